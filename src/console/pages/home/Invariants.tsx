import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Ago } from "../../components/Values.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"

const words = operatorTexts.overview

interface Invariant {
  readonly name: string
  readonly broken: number
  readonly users: ReadonlyArray<string>
  readonly at: string | null
  /** An older check proves nothing. */
  readonly freshMinutes: number
}

const isOld = ({ at, freshMinutes }: Invariant): boolean =>
  at !== null && Date.now() - new Date(at).getTime() > freshMinutes * 60_000

const columns: ReadonlyArray<Column<Invariant>> = [
  { title: words.invariant, isPlain: true, cell: ({ name }) => name },
  {
    title: words.broken,
    isPlain: true,
    cell: ({ at, broken, users }) =>
      broken === 0 ? (
        <span class={at === null ? "faint" : "status good"}>
          {at === null ? words.never : words.holds}
        </span>
      ) : (
        <>
          <span class="status bad">{words.isBroken(broken)}</span>
          {users.map((id) => (
            <div key={id}>
              <Link to={`/users/${id}`}>
                <code>{id}</code>
              </Link>
            </div>
          ))}
        </>
      )
  },
  {
    title: words.checked,
    cell: (it) => (
      <span class={isOld(it) ? "status bad" : undefined}>
        <Ago at={it.at} />
      </span>
    )
  }
]

/** The findings of the wallet audit. */
export const Invariants = ({ of }: { readonly of: Schemas["Queues"]["wallets"] }) => (
  <Table
    caption={words.invariants}
    columns={columns}
    rows={[
      {
        name: words.wallets,
        broken: of.drift,
        users: of.drifting_user_ids,
        at: of.audited_at,
        freshMinutes: 5
      },
      {
        name: words.budgets,
        broken: of.budget_drift,
        users: [],
        at: of.budgets_audited_at,
        freshMinutes: 20
      }
    ]}
    idOf={({ name }) => name}
  />
)
