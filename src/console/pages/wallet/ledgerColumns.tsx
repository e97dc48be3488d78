import { Icon } from "../../components/Icon.tsx"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Ago, Credits, Time } from "../../components/Values.tsx"
import { showCredits } from "../../format/credits.ts"
import { texts } from "../../texts/en.ts"
import { walletTexts } from "../../texts/en/wallet.ts"
import { availableAfter, changeOf, kindOf } from "./ledger.ts"
import type { LedgerRow } from "./ledger.ts"
import type { Work } from "./useWork.ts"

const words = walletTexts

interface Shown {
  /** The rows whose entries are expanded. */
  readonly open: ReadonlySet<string>
  readonly work: ReadonlyMap<string, Work>
  readonly onToggle: (id: string) => void
}

/** A task is named by its prompt, a call by its model, older ones by id, and anything else by the operator's note. */
const Subject = ({ row, work }: { readonly row: LedgerRow; readonly work: Work | undefined }) => {
  const { note, task_id: id } = row.newest
  if (id === null) return <>{note ?? <span class="faint">{words.noNote}</span>}</>
  return (
    <>
      {work === undefined ? (
        <Link to={`/open/${id}`}>
          {words.ofWork} <code title={id}>…{id.slice(-8)}</code>
        </Link>
      ) : (
        <Link to={work.path} class="clip">
          {work.title}
        </Link>
      )}
      {note !== null && <span class="faint"> {note}</span>}
    </>
  )
}

const Entries = ({ entries }: LedgerRow) => (
  <ul class="entries">
    {entries.map(({ amount, created_at: at, held_after: held, kind, seq, settled_after }) => (
      <li key={seq}>
        {words.kinds[kind]} <Credits amount={amount} />
        <span class="faint">
          {" · "}
          <Time at={at} />
          {" · "}
          {words.after(showCredits(settled_after), showCredits(held))}
        </span>
      </li>
    ))}
  </ul>
)

export const ledgerColumns = ({
  onToggle,
  open,
  work
}: Shown): ReadonlyArray<Column<LedgerRow>> => [
  {
    title: words.subject,
    isPlain: true,
    cell: (row) => (
      <>
        <Subject row={row} work={work.get(row.id)} />
        {open.has(row.id) && <Entries {...row} />}
      </>
    )
  },
  { title: words.kind, isPlain: true, isLead: true, cell: (row) => words.kinds[kindOf(row)] },
  { title: words.change, isNumber: true, isPlain: true, cell: (row) => changeOf(row) },
  {
    title: words.availableAfter,
    isNumber: true,
    isAbout: true,
    cell: ({ newest }) => <Credits amount={availableAfter(newest)} />
  },
  {
    title: words.at,
    isNumber: true,
    isPlain: true,
    cell: ({ newest }) => <Ago at={newest.created_at} />
  },
  {
    title: texts.actions,
    isEnd: true,
    cell: ({ id, newest }) => (
      <button
        type="button"
        class="quiet square"
        aria-expanded={open.has(id)}
        aria-label={words.entriesOf(newest.task_id ?? String(newest.seq))}
        onClick={() => onToggle(id)}
      >
        <Icon name="down" />
      </button>
    )
  }
]
