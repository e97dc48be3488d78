import { useEffect, useState } from "preact/hooks"
import { Link } from "../../components/Link.tsx"
import { showDuration, utcOf } from "../../format/time.ts"
import { viewedUser } from "../../router/location.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import type { What } from "./EndpointDialogs.tsx"
import type { Endpoint } from "./endpointForm.ts"

const secondMillis = 1000

/** Counts down to the end of the old secret. */
const OldSecret = ({ until }: { readonly until: string }) => {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), secondMillis)
    return () => clearInterval(timer)
  }, [])
  const left = new Date(until).getTime() - now
  if (left <= 0) return null
  return (
    <div class="status going" title={utcOf(until)}>
      {words.oldSecret(showDuration(left))}
    </div>
  )
}

const State = ({ of: { enabled, health } }: { readonly of: Endpoint }) => {
  if (!enabled) return <span class="status bad">{words.paused}</span>
  const { failed_attempts: count, last_attempt: last, status } = health
  if (status !== "failing" || last === null || last.failure === null) {
    return <span class="status good">{words.active}</span>
  }
  const why = last.status === null ? words.failures[last.failure] : words.httpStatus(last.status)
  return <span class="status bad">{words.failing(count, why)}</span>
}

interface Props {
  readonly endpoint: Endpoint
  readonly onAct: (what: What, endpoint: Endpoint) => void
}

/** An endpoint with what one does with it. The operator who views as a user changes nothing. */
export const EndpointCard = ({ endpoint, onAct }: Props) => {
  const { description, events, id, old_secret_expires_at: until, url } = endpoint
  return (
    <li class="card endpoint">
      <h2 class="address">{url}</h2>
      {description !== null && <p class="faint">{description}</p>}
      <dl class="pairs">
        <div>
          <dt>{words.state}</dt>
          <dd>
            <State of={endpoint} />
          </dd>
        </div>
        <div>
          <dt>{words.events}</dt>
          <dd>{events.join(", ")}</dd>
        </div>
        <div>
          <dt>{words.secret}</dt>
          <dd>
            <code>{endpoint.secret_preview}</code>
            {until !== null && <OldSecret until={until} />}
          </dd>
        </div>
      </dl>
      <p>
        <Link to="/webhooks/deliveries" query={{ endpoint_id: id }}>
          {words.deliveriesOf}
          <span class="hidden"> {url}</span>
        </Link>
      </p>
      {viewedUser() === undefined && <Actions endpoint={endpoint} onAct={onAct} />}
    </li>
  )
}

const Actions = ({ endpoint, onAct }: Props) => {
  const actions: ReadonlyArray<What> = endpoint.enabled
    ? ["test", "change", "rotate", "recover", "pause", "remove"]
    : ["resume", "change", "rotate", "recover", "remove"]
  return (
    <div class="actions">
      {actions.map((what) => (
        <button
          key={what}
          type="button"
          class={what === "remove" ? "small danger" : "small"}
          aria-label={words.actionOn(words[what], endpoint.url)}
          onClick={() => onAct(what, endpoint)}
        >
          {words[what]}
        </button>
      ))}
    </div>
  )
}
