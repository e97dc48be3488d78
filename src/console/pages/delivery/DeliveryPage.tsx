import { useAction } from "../../api/action.ts"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { service } from "../../api/session.ts"
import { CopyButton } from "../../components/CopyButton.tsx"
import { Link } from "../../components/Link.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded, ProblemView } from "../../components/States.tsx"
import { Ago, Text, Time } from "../../components/Values.tsx"
import { indented } from "../../format/json.ts"
import { showDuration } from "../../format/time.ts"
import { viewedUser } from "../../router/location.ts"
import type { PageProps } from "../../routes.ts"
import { failureTexts } from "../../texts/en/failures.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { webhookTexts } from "../../texts/en/webhooks.ts"
import { DeliveryStatus } from "../deliveries/deliveryColumns.tsx"

type Delivery = Schemas["WebhookDeliveryWithAttempts"]
type Attempt = Delivery["attempts"][number]

const words = webhookTexts.delivery

/** A deleted endpoint is in no list, and neither is the webhook of a task. */
const readDelivery = async (id: string) => {
  const delivery = await api.GET("/manage/v1/webhook-deliveries/{id}", { path: { id } })
  if (delivery.webhook_url !== null) return { delivery, url: delivery.webhook_url }
  const endpoint = await api
    .GET("/manage/v1/webhook-endpoints/{id}", {
      path: { id: delivery.endpoint_id }
    })
    .catch(() => undefined)
  return { delivery, url: endpoint?.url }
}

/** `/webhooks/deliveries/:id`: what was sent, each attempt with its response, and why it failed. */
export default function DeliveryPage({ params: { id = "" } }: PageProps) {
  const found = useResource(id, () => readDelivery(id))
  const { cause, isDone, run } = useAction()
  useLive((event) => {
    const isOwn = event.type === "delivery" && event.data.id === id
    if (event.type === "poll" || (isOwn && isNews(found.data?.delivery, event.data))) {
      found.reload()
    }
  })
  const redeliver = async () => {
    await api.POST("/manage/v1/webhook-deliveries/{id}/redeliver", { path: { id } })
    found.reload()
  }
  return (
    <>
      <PageHeader title={found.data?.delivery.type} back="/webhooks/deliveries">
        {viewedUser() === undefined && (
          <button type="button" class="primary" onClick={() => void run(redeliver)}>
            {words.again}
          </button>
        )}
      </PageHeader>
      {isDone === true && (
        <p class="banner" role="status">
          {words.sentAgain}
        </p>
      )}
      {cause !== undefined && <ProblemView cause={cause} />}
      <Loaded of={found}>
        {({ delivery, url }) => <DeliveryView delivery={delivery} url={url} />}
      </Loaded>
    </>
  )
}

/** A new stream repeats the current state, which is no news. */
const isNews = (delivery: Delivery | undefined, event: Schemas["WebhookDelivery"]): boolean =>
  delivery?.status !== event.status || delivery.attempt_count !== event.attempt_count

interface ViewProps {
  readonly delivery: Delivery
  readonly url: string | undefined
}

const DeliveryView = ({ delivery, url }: ViewProps) => (
  <>
    <p class="facts">
      <DeliveryStatus of={delivery.status} />
      <Ago at={delivery.created_at} />
      {delivery.task_id !== null && <Link to={`/tasks/${delivery.task_id}`}>{words.toTask}</Link>}
    </p>
    <Why delivery={delivery} />
    <div class="columns">
      <section>
        <h2>{words.attempts}</h2>
        {delivery.attempts.length === 0 && <p class="faint">{words.none}</p>}
        {delivery.attempts.map((attempt) => (
          <OneAttempt key={attempt.seq} attempt={attempt} />
        ))}
        {delivery.next_attempt_at !== null && (
          <p>
            {words.next}: <Time at={delivery.next_attempt_at} />
          </p>
        )}
      </section>
      <section>
        <h2>{words.request}</h2>
        <p class="address">
          <code>POST {url ?? words.gone}</code>
        </p>
        <h3>{words.headers}</h3>
        <Text label={words.headers} text={headersOf(delivery)} />
        <div class="text-head">
          <h3>{words.body}</h3>
          {delivery.body !== "" && <CopyButton text={delivery.body} what={words.body} />}
        </div>
        {delivery.body === "" ? (
          <p class="faint">{words.bodyGone}</p>
        ) : (
          <>
            <Text label={words.body} text={indented(delivery.body)} />
            <p class="help">{words.bodyHelp}</p>
          </>
        )}
        <p>
          <Link to="/webhooks/signature">{words.debug}</Link>
        </p>
      </section>
    </div>
  </>
)

/** Each attempt has a new timestamp and signature. docs/reference/webhooks.md#delivery-request */
const headersOf = ({ id }: Delivery): string => {
  const name = service.value?.name ?? ""
  return [
    `Content-Type: application/json`,
    `User-Agent: ${name}-Webhook/1.0`,
    `X-${name}-Webhook-Id: ${id}`,
    `X-${name}-Webhook-Timestamp: …`,
    `X-${name}-Webhook-Signature: v1=…`
  ].join("\n")
}

/** The reason is that of the last attempt that has ended. */
const Why = ({ delivery: { attempts, status } }: { readonly delivery: Delivery }) => {
  if (status === "succeeded" || status === "delivering") return null
  const failure = attempts.findLast(({ ended_at: end }) => end !== null)?.failure ?? undefined
  if (failure === undefined && status !== "skipped") return null
  return (
    <div class="problem">
      <p class="problem-title">{status === "pending" ? words.whyLast : words.why}</p>
      {failure !== undefined && (
        <p>
          {failureTexts[failure]}. {words.advice[failure]}
        </p>
      )}
      {status === "skipped" && <p>{words.skipped}</p>}
    </div>
  )
}

const OneAttempt = ({ attempt }: { readonly attempt: Attempt }) => {
  const { answer, detail, ended_at: ended, failure, lateness_ms: late, status } = attempt
  const isGood = ended !== null && failure === null
  return (
    <article class="attempt">
      <h3>{words.attempt(attempt.seq)}</h3>
      <p>
        <span class={`status ${toneOf(isGood, ended !== null)}`}>
          {[
            ended === null ? words.status.delivering : "",
            status === null ? "" : taskTexts.answered(status),
            failure === null ? "" : failureTexts[failure]
          ]
            .filter(Boolean)
            .join(", ")}
        </span>
        {detail !== null && detail !== `HTTP ${status}` && <span class="faint"> {detail}</span>}
      </p>
      <p class="faint">
        <Time at={attempt.started_at} /> · {words.late(showDuration(late))}
        {attempt.remote_address !== null && ` · ${attempt.remote_address}`}
      </p>
      {answer !== null && (
        <>
          <h4>{words.answer}</h4>
          {answer === "" ? (
            <p class="faint">{words.noAnswer}</p>
          ) : (
            <Text label={`${words.attempt(attempt.seq)}, ${words.answer}`} text={answer} />
          )}
        </>
      )}
    </article>
  )
}

const toneOf = (isGood: boolean, isEnded: boolean): string => {
  if (isGood) return "good"
  return isEnded ? "bad" : "going"
}
