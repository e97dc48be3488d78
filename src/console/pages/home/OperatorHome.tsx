import { api } from "../../api/client.ts"
import { usePoll } from "../../api/poll.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded } from "../../components/States.tsx"
import { Time } from "../../components/Values.tsx"
import { showDuration } from "../../format/time.ts"
import { homeTexts } from "../../texts/en/home.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { accountColumns } from "../accounts/accountColumns.tsx"
import { Charges } from "./Charges.tsx"
import { Invariants } from "./Invariants.tsx"

const words = operatorTexts.overview

/** The service as it stands: what waits, what must hold, which account needs somebody. */
export const OperatorHome = () => {
  const queues = useResource("queues", () => api.GET("/manage/v1/queues", {}))
  const accounts = useResource("accounts", () => api.GET("/manage/v1/accounts", {}))
  usePoll(() => {
    queues.reload()
    accounts.reload()
  })
  return (
    <>
      <PageHeader title={homeTexts.title} about={words.update} />
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

/** How long a store that went back in time is shown after its mark. */
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

/** Later than this is late. */
const lateMillis = 10_000

interface TroublesProps {
  readonly queues: Schemas["Queues"] | undefined
  readonly accounts: ReadonlyArray<Schemas["VendorAccount"]>
}

/** What needs somebody, in a strip; nothing when all is well. */
const Troubles = ({ accounts, queues }: TroublesProps) => {
  const broken = accounts.filter(({ health }) => health !== "healthy")
  const late = (queues?.tasks.lateness_ms ?? 0) > lateMillis
  const lateDeliveries = (queues?.deliveries.lateness_ms ?? 0) > lateMillis
  const { budget_drift: budgets = 0, drift = 0 } = queues?.wallets ?? {}
  if (broken.length + drift + budgets === 0 && !late && !lateDeliveries) return null
  return (
    <ul class="problems" aria-label={words.problems}>
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

const Depths = ({ of: { deliveries, tasks, wallets } }: { readonly of: Schemas["Queues"] }) => (
  <>
    <h2>{words.tasks}</h2>
    <Tiles>
      <Tile name={words.unfinished}>{tasks.unfinished}</Tile>
      <Tile name={words.waiting}>{tasks.waiting_for_slot}</Tile>
      <Tile name={words.unowned}>{tasks.unowned}</Tile>
      <Tile name={words.due}>{tasks.due}</Tile>
      <Tile name={words.lateness} isBad={tasks.lateness_ms > lateMillis}>
        {showDuration(tasks.lateness_ms)}
      </Tile>
    </Tiles>
    <h2>{words.deliveries}</h2>
    <Tiles>
      <Tile name={words.unfinished}>{deliveries.unfinished}</Tile>
      <Tile name={words.sending}>{deliveries.in_progress}</Tile>
      <Tile name={words.due}>{deliveries.due}</Tile>
      <Tile name={words.lateness} isBad={deliveries.lateness_ms > lateMillis}>
        {showDuration(deliveries.lateness_ms)}
      </Tile>
    </Tiles>
    <h2>{words.invariants}</h2>
    <Invariants of={wallets} />
  </>
)

const InNeed = ({ accounts }: { readonly accounts: ReadonlyArray<Schemas["VendorAccount"]> }) => {
  const rows = accounts.filter(
    ({ health, status }) => health !== "healthy" || status === "draining"
  )
  return rows.length === 0 ? (
    <p>{words.allWell}</p>
  ) : (
    <Table caption={words.accounts} columns={accountColumns} rows={rows} idOf={({ id }) => id} />
  )
}
