import { useEffect, useState } from "preact/hooks"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { RowMenu } from "../../components/list/RowMenu.tsx"
import { Ago, None } from "../../components/Values.tsx"
import { showDuration, utcOf } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import { webhookTexts as words } from "../../texts/en/webhooks.ts"
import { ActivityBars } from "./ActivityBars.tsx"
import type { What } from "./EndpointDialogs.tsx"
import type { Endpoint } from "./endpointForm.ts"
import { TestOutcome } from "./TestOutcome.tsx"

const secondMillis = 1000

/** Counts down to the expiry of the old secret. */
const OldSecret = ({ until }: { readonly until: string }) => {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), secondMillis)
    return () => clearInterval(timer)
  }, [])
  const left = new Date(until).getTime() - now
  if (left <= 0) return null
  return (
    <div class="second status going" title={utcOf(until)}>
      {words.oldSecret(showDuration(left))}
    </div>
  )
}

const State = ({ of: { enabled, health } }: { readonly of: Endpoint }) => {
  if (!enabled) return <span class="status going">{words.paused}</span>
  const { failed_attempts: count, last_attempt: last, status } = health
  if (status !== "failing" || last === null || last.failure === null) {
    return <span class="status good">{words.active}</span>
  }
  const why = last.status === null ? words.failures[last.failure] : words.httpStatus(last.status)
  return (
    <>
      <span class="status bad">{words.failing(count, why)}</span>
      {isForLong(health.failing_since) && <div class="second">{words.failingForLong}</div>}
    </>
  )
}

const dayMillis = 86_400_000

const isForLong = (since: string | null): boolean =>
  since !== null && Date.now() - new Date(since).getTime() >= dayMillis

const LastAttempt = ({ health: { last_attempt: last } }: Endpoint) =>
  last === null ? (
    <None />
  ) : (
    <>
      {last.status !== null && `${last.status} · `}
      <Ago at={last.started_at} />
    </>
  )

interface Shown {
  /** The id of each endpoint's last test event. */
  readonly tests: ReadonlyMap<string, string>
  readonly onAct: (what: What, endpoint: Endpoint) => void
  /** An operator viewing as a user cannot change anything. */
  readonly isReadOnly: boolean
}

export const endpointColumns = (shown: Shown): ReadonlyArray<Column<Endpoint>> => [
  {
    title: words.endpoint,
    isPlain: true,
    cell: ({ description, events, id, old_secret_expires_at: until, url }) => {
      const test = shown.tests.get(id)
      return (
        <>
          <Link to="/webhooks/deliveries" query={{ endpoint_id: id }}>
            <span class="clip">{url}</span>
          </Link>
          <div class="second" title={events.join("\n")}>
            {description !== null && `${description} · `}
            {words.eventCount(events.length)}
          </div>
          {until !== null && <OldSecret until={until} />}
          {test !== undefined && <TestOutcome key={test} delivery={test} />}
        </>
      )
    }
  },
  {
    title: words.state,
    isPlain: true,
    cell: (endpoint) => (
      <div class="state">
        <State of={endpoint} />
      </div>
    )
  },
  { title: words.activity, cell: ({ id }) => <ActivityBars endpoint={id} /> },
  { title: words.lastAttempt, isNumber: true, cell: (endpoint) => <LastAttempt {...endpoint} /> },
  ...(shown.isReadOnly ? [] : [actionsColumn(shown.onAct)])
]

const actionsColumn = (onAct: Shown["onAct"]): Column<Endpoint> => ({
  title: texts.actions,
  isEnd: true,
  cell: (endpoint) => {
    const { enabled, url } = endpoint
    const actions: ReadonlyArray<What> = enabled
      ? ["change", "rotate", "recover", "pause", "remove"]
      : ["resume", "change", "rotate", "recover", "remove"]
    return (
      <span class="row-actions">
        {enabled && (
          <button
            type="button"
            class="small"
            aria-label={words.actionOn(words.test, url)}
            onClick={() => onAct("test", endpoint)}
          >
            {words.testShort}
          </button>
        )}
        <RowMenu
          of={url}
          actions={actions.map((what) => ({
            label: words[what],
            name: words.actionOn(words[what], url),
            isDangerous: what === "remove",
            onAct: () => onAct(what, endpoint)
          }))}
        />
      </span>
    )
  }
})
