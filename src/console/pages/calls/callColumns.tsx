import { Link } from "../../components/Link.tsx"
import { createdColumn } from "../../components/list/createdColumn.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Duration, None } from "../../components/Values.tsx"
import { showCharge } from "../../format/credits.ts"
import { showDuration } from "../../format/time.ts"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { callName, Outcome, Tokens } from "./tokens.tsx"
import type { Call } from "./tokens.tsx"

const words = callTexts

const isSuccess = (status: number | null): boolean =>
  status !== null && status >= 200 && status < 300

export const callColumns: ReadonlyArray<Column<Call>> = [
  {
    title: filterTexts.model,
    isPlain: true,
    cell: (call) => <Link to={`/calls/${call.id}`}>{callName(call)}</Link>
  },
  {
    title: filterTexts.outcome,
    isPlain: true,
    isLead: true,
    cell: ({ http_status: status, outcome }) => (
      <>
        <Outcome of={outcome} />
        {status !== null && !isSuccess(status) && (
          <span class="faint"> · {taskTexts.answered(status)}</span>
        )}
      </>
    )
  },
  {
    title: words.tokens,
    isNumber: true,
    isAbout: true,
    cell: ({ usage }) => <Tokens usage={usage} />
  },
  {
    title: words.firstToken,
    isNumber: true,
    isAbout: true,
    cell: ({ time_to_first_token_ms: first }) => (first === null ? <None /> : showDuration(first))
  },
  {
    title: texts.tasks.duration,
    isNumber: true,
    isPlain: true,
    cell: ({ created_at: from, ended_at: to }) => <Duration from={from} to={to} />
  },
  {
    title: texts.tasks.cost,
    isNumber: true,
    cell: ({ cost, outcome }) => (outcome === "settled" ? showCharge(cost) : <None />)
  },
  createdColumn(words.begun)
]
