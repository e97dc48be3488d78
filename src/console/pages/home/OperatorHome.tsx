import { api } from "../../api/client.ts"
import { usePoll } from "../../api/poll.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded } from "../../components/States.tsx"
import { None, Time } from "../../components/Values.tsx"
import { showDuration } from "../../format/time.ts"
import { homeTexts } from "../../texts/en/home.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { accountColumns } from "../accounts/accountColumns.tsx"
import { Charges } from "./Charges.tsx"
import { Invariants } from "./Invariants.tsx"

const words = operatorTexts.overview

/** The state of the service: queues, invariants, and accounts that need attention. */
export const OperatorHome = () => {
  const queues = useResource("queues", () => api.GET("/manage/v1/queues", {}))
  const accounts = useResource("accounts", () => api.GET("/manage/v1/accounts", {}))
  usePoll(() => {
    queues.reload()
    accounts.reload()
  })
  return (
    <>
      <PageHeader about={words.update} />
      {queues.data !== undefined && <Restored of={queues.data} />}
      <Troubles queues={queues.data} accounts={accounts.data?.data ?? []} />
      <h2>{words.charges}</h2>
      <Charges />
      <Loaded of={queues}>{(it) => <Depths of={it} />}</Loaded>
      <h2>{words.accounts}</h2>
      <Loaded of={accounts}>{({ data }) => <InNeed accounts={data} />}</Loaded>
      <p>
        <Link to="/accounts">{words.allAccounts}</Link>
      </p>
    </>
  )
}

/** How long after the mark a restored store is shown. */
const restoredShownMillis = 24 * 60 * 60_000

const isRecent = (at: string): boolean => Date.now() - new Date(at).getTime() < restoredShownMillis

const Restored = ({ of: { store } }: { readonly of: Schemas["Queues"] }) => {
  const { restored_at: at, tasks_in_doubt: doubted, trusted_until: until } = store
  if (at === null || (!isRecent(at) && doubted === 0)) return null
  return (
    <div class="problem" role="alert">
      <p class="problem-title">{words.wentBack}</p>
      <p>
        {words.foundAt} <Time at={at} />.{" "}
        {until !== null && (
          <>
            {words.lostSince} <Time at={until} />.{" "}
          </>
        )}
        {words.inDoubt(doubted)}
      </p>
    </div>
  )
}

/** From here on a queue counts as late. */
const lateMillis = 10_000

interface TroublesProps {
  readonly queues: Schemas["Queues"] | undefined
  readonly accounts: ReadonlyArray<Schemas["VendorAccount"]>
}

/** What needs attention, in a strip; absent when all is well. */
const Troubles = ({ accounts, queues }: TroublesProps) => {
  const broken = accounts.filter(({ health }) => health !== "healthy")
  const late = (queues?.tasks.lateness_ms ?? 0) > lateMillis
  const lateDeliveries = (queues?.deliveries.lateness_ms ?? 0) > lateMillis
  const { budget_drift: budgets = 0, drift = 0 } = queues?.wallets ?? {}
  if (broken.length + drift + budgets === 0 && !late && !lateDeliveries) return null
  return (
    <ul class="problems" aria-label={homeTexts.problems}>
      {broken.map(({ health, id, last_fault: fault }) => (
        <li key={id}>
          <Link to="/accounts">
            {health === "unavailable" ? words.unavailable(id) : words.degraded(id)}
          </Link>
          {fault !== null && <span class="faint"> {fault.remedy}</span>}
        </li>
      ))}
      {drift > 0 && <li>{words.drift(drift)}</li>}
      {budgets > 0 && <li>{words.budgetDrift(budgets)}</li>}
      {late && <li>{words.late(showDuration(queues?.tasks.lateness_ms ?? 0))}</li>}
      {lateDeliveries && (
        <li>{words.lateDeliveries(showDuration(queues?.deliveries.lateness_ms ?? 0))}</li>
      )}
    </ul>
  )
}

interface Queue {
  readonly name: string
  readonly unfinished: number
  /** `undefined` here and below: the queue has no such state. */
  readonly running: number | undefined
  readonly waiting: number | undefined
  readonly unowned: number | undefined
  readonly due: number
  readonly lateness_ms: number
}

const countColumn = (title: string, of: (queue: Queue) => number | undefined): Column<Queue> => ({
  title,
  isNumber: true,
  cell: (queue) => of(queue) ?? <None />
})

const queueColumns: ReadonlyArray<Column<Queue>> = [
  { title: words.queue, isPlain: true, cell: ({ name }) => name },
  countColumn(words.unfinished, ({ unfinished }) => unfinished),
  countColumn(words.sending, ({ running }) => running),
  countColumn(words.waiting, ({ waiting }) => waiting),
  countColumn(words.unowned, ({ unowned }) => unowned),
  countColumn(words.due, ({ due }) => due),
  {
    title: words.lateness,
    isNumber: true,
    cell: ({ lateness_ms: late }) => (
      <span class={late > lateMillis ? "status bad" : undefined}>{showDuration(late)}</span>
    )
  }
]

const Depths = ({ of: { deliveries, tasks, wallets } }: { readonly of: Schemas["Queues"] }) => (
  <>
    <h2>{words.queues}</h2>
    <Table
      caption={words.queues}
      columns={queueColumns}
      rows={[
        {
          ...tasks,
          name: words.tasks,
          running: undefined,
          waiting: tasks.waiting_for_slot
        },
        {
          ...deliveries,
          name: words.deliveries,
          running: deliveries.in_progress,
          waiting: undefined,
          unowned: undefined
        }
      ]}
      idOf={({ name }) => name}
    />
    <h2>{words.invariants}</h2>
    <Invariants of={wallets} />
  </>
)

const InNeed = ({ accounts }: { readonly accounts: ReadonlyArray<Schemas["VendorAccount"]> }) => {
  const rows = accounts.filter(
    ({ health, status }) => health !== "healthy" || status === "draining"
  )
  return (
    <Table
      caption={words.accounts}
      columns={accountColumns}
      rows={rows}
      idOf={({ id }) => id}
      empty={<p>{words.allWell}</p>}
    />
  )
}
