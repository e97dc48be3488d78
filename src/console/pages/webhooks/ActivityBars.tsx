import { api } from "../../api/client.ts"
import { useThrottled } from "../../api/listen.ts"
import { useLive } from "../../api/live.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Plot } from "../../components/chart/Plot.tsx"
import { hourAfter, showLocalHour } from "../../format/days.ts"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"

type Hour = Schemas["WebhookEndpointActivity"]["hours"][number]

/** Attempts arrive in bursts, so they are counted at most this often. */
const pauseMillis = 10_000

const outcomes = [
  ["succeeded", "good"],
  ["failed", "bad"],
  ["waiting", "going"]
] as const

const totalOf = ({ failed, succeeded, waiting }: Hour): number => succeeded + failed + waiting

/** The deliveries of an endpoint in the last 24 hours, one bar per hour. */
export const ActivityBars = ({ endpoint }: { readonly endpoint: string }) => {
  const found = useResource(`${viewedUser() ?? ""} ${endpoint}`, () =>
    api.GET("/manage/v1/webhook-endpoints/{id}/activity", { path: { id: endpoint } })
  )
  const again = useThrottled(found.reload, pauseMillis)
  useLive((event) => {
    const isNews = event.type === "delivery" && event.data.endpoint_id === endpoint
    if (isNews || event.type === "poll") again()
  })
  if (found.data === undefined) {
    return found.cause === undefined ? <div class="chart spark" /> : <>{texts.none}</>
  }
  return <Bars endpoint={endpoint} hours={found.data.hours} />
}

interface Props {
  readonly endpoint: string
  readonly hours: ReadonlyArray<Hour>
}

const Bars = ({ endpoint, hours }: Props) => {
  const top = Math.max(1, ...hours.map(totalOf))
  const sum = (name: "failed" | "succeeded" | "waiting") =>
    hours.reduce((before, hour) => before + hour[name], 0)
  const all = {
    succeeded: sum("succeeded"),
    failed: sum("failed"),
    waiting: sum("waiting"),
    has_more: hours.some((hour) => hour.has_more)
  }
  return (
    <>
      <Plot
        isSmall
        title={words.activityOf(words.deliveriesOf(all))}
        top={top}
        showValue={String}
        places={hours.map((hour) => ({
          label: showLocalHour(hour.hour),
          value: words.deliveriesOf(hour),
          to: {
            path: "/webhooks/deliveries",
            query: { endpoint_id: endpoint, since: hour.hour, until: hourAfter(hour.hour) }
          }
        }))}
        marks={hours.map((hour) =>
          totalOf(hour) === 0 ? null : (
            <div
              key={hour.hour}
              class="bar"
              style={{ height: `max(4px, ${(totalOf(hour) / top) * 100}%)` }}
            >
              {outcomes.map(
                ([name, tone]) =>
                  hour[name] > 0 && (
                    <div key={name} data-tone={tone} style={{ flexGrow: hour[name] }} />
                  )
              )}
            </div>
          )
        )}
      />
      {all.failed > 0 && <div class="second">{words.failedOf(all.failed)}</div>}
    </>
  )
}
