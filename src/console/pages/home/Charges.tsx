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
import { weekOf } from "./readHome.ts"

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
        const charged = new Map(data.map(({ amount, day }) => [day, amount]))
        const amounts = days.map((day) => charged.get(day) ?? "0.00")
        const { change, spent } = weekOf(amounts)
        const month = amounts.filter((_, index) => (days[index] ?? "") >= from)
        return (
          <>
            <Tiles>
              <Tile name={words.chargedToday} to="/usage" query={{ from: today }}>
                <Credits amount={amounts.at(-1) ?? "0.00"} />
              </Tile>
              <Tile
                name={homeTexts.week}
                to="/usage"
                query={{ from: days.at(-7) ?? "" }}
                note={change === undefined ? homeTexts.noWeekBefore : homeTexts.change(change)}
              >
                <Credits amount={spent} />
              </Tile>
              <Tile name={words.chargedMonth} to="/usage" query={{ from }}>
                <Credits amount={sumCredits(month)} />
              </Tile>
            </Tiles>
            {amounts.some((it) => parseCredits(it) > 0n) && (
              <BarChart
                title={words.chargesByDay}
                bars={days.map((day, index) => ({
                  label: showDay(day),
                  value: `${showCredits(amounts[index] ?? "0.00")} ${texts.credits}`,
                  length: Number(amounts[index] ?? "0"),
                  to: { path: "/usage", query: { day } }
                }))}
              />
            )}
          </>
        )
      }}
    </Loaded>
  )
}
