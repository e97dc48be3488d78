import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Credits, Duration, Time } from "../../components/Values.tsx"
import { showDuration } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import { Outcome, Tokens } from "./tokens.tsx"
import type { Call } from "./tokens.tsx"

const words = texts.calls

export const callColumns: ReadonlyArray<Column<Call>> = [
  {
    title: texts.filters.model,
    cell: ({ account_id: account, id, model, route, vendor }) => (
      <>
        <Link to={`/calls/${id}`}>
          {vendor}/{model ?? route}
        </Link>
        {account !== null && <div class="faint">{texts.task.account(account)}</div>}
      </>
    )
  },
  {
    title: texts.filters.outcome,
    cell: ({ http_status: status, outcome }) => (
      <>
        <Outcome of={outcome} />
        {status !== null && <div class="faint">{texts.task.answered(status)}</div>}
      </>
    )
  },
  { title: texts.tasks.cost, isNumber: true, cell: ({ cost }) => <Credits amount={cost} /> },
  { title: words.tokens, isNumber: true, cell: ({ usage }) => <Tokens usage={usage} /> },
  {
    title: texts.tasks.duration,
    isNumber: true,
    cell: ({ created_at: from, ended_at: to, time_to_first_token_ms: first }) => (
      <>
        <Duration from={from} to={to} />
        {first !== null && <div class="faint">{words.firstIn(showDuration(first))}</div>}
      </>
    )
  },
  { title: words.begun, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    title: texts.tasks.trace,
    cell: ({ trace_id: trace }) =>
      trace === null ? texts.none : <code title={trace}>{trace.slice(0, 8)}…</code>
  }
]
