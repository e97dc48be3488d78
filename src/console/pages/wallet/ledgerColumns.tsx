import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { Credits, Time } from "../../components/Values.tsx"
import { parseCredits, showCredits, textOfCredits } from "../../format/credits.ts"
import { texts } from "../../texts/en.ts"

type Entry = Schemas["WalletEntry"]

const words = texts.wallet

/** What the entry did to what is available; a charge takes what was held before. */
const changeOf = ({ amount, kind }: Entry): string => {
  if (kind === "capture") return ""
  const micro = parseCredits(amount)
  const signed = kind === "hold" || kind === "late_charge" ? -micro : micro
  return `${signed > 0n ? "+" : ""}${showCredits(textOfCredits(signed))}`
}

const availableOf = ({ held_after: held, settled_after: settled }: Entry): string =>
  textOfCredits(parseCredits(settled) - parseCredits(held))

/** Of a task, or of a call: the trace leads to both. */
const Subject = ({ note, task_id: id, trace_id: trace }: Entry) => (
  <>
    {note !== null && <div>{note}</div>}
    {id !== null && (
      <div>
        <Link to="/wallet" query={{ task_id: id }}>
          <code title={id}>{id.slice(0, 8)}…</code>
        </Link>
      </div>
    )}
    {id !== null && trace !== null && (
      <div class="faint">
        <Link to="/tasks" query={{ trace_id: trace }}>
          {words.toTask}
        </Link>
        {" · "}
        <Link to="/calls" query={{ trace_id: trace }}>
          {words.toCall}
        </Link>
      </div>
    )}
  </>
)

export const ledgerColumns: ReadonlyArray<Column<Entry>> = [
  { title: words.at, cell: ({ created_at: at }) => <Time at={at} /> },
  { title: words.kind, cell: ({ kind }) => texts.task.entry[kind] },
  { title: words.amount, isNumber: true, cell: ({ amount }) => <Credits amount={amount} /> },
  { title: words.change, isNumber: true, cell: (entry) => changeOf(entry) },
  {
    title: words.availableAfter,
    isNumber: true,
    cell: (entry) => <Credits amount={availableOf(entry)} />
  },
  {
    title: words.settledAfter,
    isNumber: true,
    cell: ({ settled_after: after }) => <Credits amount={after} />
  },
  {
    title: words.heldAfter,
    isNumber: true,
    cell: ({ held_after: after }) => <Credits amount={after} />
  },
  { title: words.subject, cell: (entry) => <Subject {...entry} /> }
]
