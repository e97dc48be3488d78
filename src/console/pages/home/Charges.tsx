import { api, dataOf } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Loaded } from "../../components/States.tsx"
import { Credits } from "../../components/Values.tsx"
import { sumCredits } from "../../format/credits.ts"
import { dayOf } from "../../format/time.ts"
import { operatorTexts } from "../../texts/en/operator.ts"

const words = operatorTexts.overview
const now = () => new Date()

/** What all users were charged for real work; a tile leads to the users and models. */
export const Charges = () => {
  const today = dayOf(now())
  const from = `${today.slice(0, 8)}01`
  const month = useResource(`charges ${today}`, () =>
    dataOf(
      api.GET("/manage/v1/usage", {
        params: { query: { from, to: today, sandbox: "false", limit: 100 } }
      })
    )
  )
  return (
    <Loaded of={month}>
      {({ data }) => {
        const amounts = data.map(({ amount }) => amount)
        const ofToday = data.find(({ day }) => day === today)?.amount ?? "0.00"
        return (
          <Tiles>
            <Tile name={words.chargedToday} to="/usage" query={{ from: today }}>
              <Credits amount={ofToday} />
            </Tile>
            <Tile name={words.chargedMonth} to="/usage" query={{ from }}>
              <Credits amount={sumCredits(amounts)} />
            </Tile>
          </Tiles>
        )
      }}
    </Loaded>
  )
}
