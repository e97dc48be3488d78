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
    cell: ({ id, model, route, vendor }) => (
      <Link to={`/calls/${id}`}>
        {vendor}/{model ?? route}
      </Link>
    )
  },
  { title: texts.filters.outcome, cell: ({ outcome }) => <Outcome of={outcome} /> },
  {
    title: words.answer,
    isNumber: true,
    cell: ({ http_status: status }) => status ?? texts.none
  },
  { title: words.begun, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    title: texts.tasks.duration,
    isNumber: true,
    cell: ({ created_at: from, ended_at: to }) => <Duration from={from} to={to} />
  },
  {
    title: words.firstToken,
    isNumber: true,
    cell: ({ time_to_first_token_ms: first }) => (first === null ? texts.none : showDuration(first))
  },
  { title: texts.filters.account, cell: ({ account_id: account }) => account ?? texts.none },
  { title: words.tokens, isNumber: true, cell: ({ usage }) => <Tokens usage={usage} /> },
  { title: texts.tasks.cost, isNumber: true, cell: ({ cost }) => <Credits amount={cost} /> },
  {
    title: texts.tasks.trace,
    cell: ({ trace_id: trace }) =>
      trace === null ? texts.none : <code title={trace}>{trace.slice(0, 8)}…</code>
  }
]
