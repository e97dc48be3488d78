import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { BarChart } from "../../components/chart/BarChart.tsx"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Loaded, LoadingRows } from "../../components/States.tsx"
import { Credits } from "../../components/Values.tsx"
import { parseCredits, showCredits, sumCredits } from "../../format/credits.ts"
import { dayAfter, dayOf, daysBetween, showDay } from "../../format/days.ts"
import { texts } from "../../texts/en.ts"
import { homeTexts } from "../../texts/en/home.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { amountsOn, weekOf } from "./readHome.ts"

const words = operatorTexts.overview
const now = () => new Date()
/** The longest month. */
const chartDays = 31

/** The charges of all users for real work, per day, with links to users and models. */
export const Charges = () => {
  const today = dayOf(now())
  const from = `${today.slice(0, 8)}01`
  const days = daysBetween(dayAfter(today, 1 - chartDays), today, chartDays)
  const usage = useResource(`charges ${today}`, () =>
    api.GET("/manage/v1/usage", {
      query: { from: days[0] ?? today, to: today, sandbox: "false", limit: 100 }
    })
  )
  return (
    <Loaded of={usage} bones={<LoadingRows tiles={3} hasChart hasRows={false} />}>
      {({ data }) => {
        const amounts = amountsOn(days, data)
        const month = amounts.filter((_, index) => (days[index] ?? "") >= from)
        return (
          <>
            <Tiles>
              <Tile name={words.chargedToday} to="/usage" query={{ from: today }}>
                <Credits amount={amounts.at(-1) ?? "0.00"} />
              </Tile>
              <WeekTile days={days} amounts={amounts} />
              <Tile name={words.chargedMonth} to="/usage" query={{ from }}>
                <Credits amount={sumCredits(month)} />
              </Tile>
            </Tiles>
            {amounts.some((it) => parseCredits(it) > 0n) && (
              <SpendingChart title={words.chargesByDay} days={days} amounts={amounts} />
            )}
          </>
        )
      }}
    </Loaded>
  )
}

/** What was charged on each of these days, in the same order. */
interface Spending {
  readonly days: ReadonlyArray<string>
  readonly amounts: ReadonlyArray<string>
}

/** The credits of the last seven days, and how they have changed. */
export const WeekTile = ({ amounts, days }: Spending) => {
  const { change, spent } = weekOf(amounts)
  const note = change === undefined ? homeTexts.noWeekBefore : homeTexts.change(change)
  return (
    <Tile name={homeTexts.week} to="/usage" query={{ from: days.at(-7) ?? "" }} note={note}>
      <Credits amount={spent} />
    </Tile>
  )
}

/** A bar per day. */
export const SpendingChart = ({ amounts, days, title }: Spending & { readonly title: string }) => (
  <BarChart
    title={title}
    bars={days.map((day, index) => ({
      label: showDay(day),
      value: `${showCredits(amounts[index] ?? "0.00")} ${texts.credits}`,
      length: Number(amounts[index] ?? "0"),
      to: { path: "/usage", query: { day } }
    }))}
  />
)
