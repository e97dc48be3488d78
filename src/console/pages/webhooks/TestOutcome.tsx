import { useEffect } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { useResource } from "../../api/resource.ts"
import { Link } from "../../components/Link.tsx"
import { millisBetween, showDuration } from "../../format/time.ts"
import { failureTexts } from "../../texts/en/failures.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"

const pollMillis = 1000

/** The outcome of a test event. */
export const TestOutcome = ({ delivery }: { readonly delivery: string }) => {
  const found = useResource(delivery, () =>
    api.GET("/manage/v1/webhook-deliveries/{id}", { path: { id: delivery } })
  )
  const attempt = found.data?.attempts.find(({ ended_at: end }) => end !== null)
  const isWaiting = attempt === undefined
  useLive((event) => {
    if (event.type === "delivery" && event.data.id === delivery && isWaiting) found.reload()
  })
  useEffect(() => {
    if (!isWaiting) return undefined
    const timer = setInterval(found.reload, pollMillis)
    return () => clearInterval(timer)
  }, [isWaiting])
  return (
    <div class="second" role="status">
      {attempt === undefined ? (
        <span class="status going">{words.testing}</span>
      ) : (
        <span class={attempt.failure === null ? "status good" : "status bad"}>
          {[
            attempt.failure === null ? words.testGood : words.testBad,
            attempt.status === null ? "" : taskTexts.answered(attempt.status),
            attempt.failure === null || attempt.failure === "http_status"
              ? ""
              : failureTexts[attempt.failure],
            attempt.ended_at === null || attempt.started_at === null
              ? ""
              : taskTexts.took(showDuration(millisBetween(attempt.started_at, attempt.ended_at)))
          ]
            .filter(Boolean)
            .join(", ")}
        </span>
      )}{" "}
      <Link to={`/webhooks/deliveries/${delivery}`}>{words.toDelivery}</Link>
    </div>
  )
}
