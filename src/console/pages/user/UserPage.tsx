import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { IdPair } from "../../components/Id.tsx"
import { Link } from "../../components/Link.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Loaded } from "../../components/States.tsx"
import { Credits, Pair, Time } from "../../components/Values.tsx"
import { isLow } from "../../format/credits.ts"
import type { PageProps } from "../../routes.ts"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { taskTexts } from "../../texts/en/task.ts"
import { walletTexts } from "../../texts/en/wallet.ts"
import { auditColumns } from "../audit/auditColumns.tsx"
import { SessionList } from "../sessions/SessionList.tsx"
import { MoneyActions } from "./MoneyActions.tsx"
import { UserActions } from "./UserActions.tsx"
import type { User } from "./userForm.ts"
import { UserState } from "./UserState.tsx"

const words = operatorTexts.user
const latest = 10

/** `/users/:id`: a user, for the operator. */
export default function UserPage({ params: { id = "" } }: PageProps) {
  const path = { id }
  const user = useResource(id, () => api.GET("/manage/v1/users/{id}", { path }))
  const wallet = useResource(`wallet ${id}`, () =>
    api.GET("/manage/v1/users/{id}/wallet", { path })
  )
  return (
    <>
      <PageHeader title={user.data?.email} back="/users">
        {user.data !== undefined && wallet.data !== undefined && (
          <>
            <MoneyActions user={user.data} wallet={wallet.data} onChanged={wallet.reload} />
            <UserActions
              user={user.data}
              onChanged={(changed) => {
                user.set(changed)
                wallet.reload()
              }}
            />
          </>
        )}
      </PageHeader>
      <Loaded of={user}>
        {(it) => (
          <>
            <p class="facts">
              <UserState of={it} />
              {it.name !== null && <span>{it.name}</span>}
            </p>
            <Loaded of={wallet}>{(money) => <Money wallet={money} />}</Loaded>
            <h2>{taskTexts.details}</h2>
            <Details user={it} />
            <h2>{texts.pages.sessions}</h2>
            <SessionList user={id} isReadOnly={false} />
            <h2>{words.latest}</h2>
            <Latest user={id} />
          </>
        )}
      </Loaded>
    </>
  )
}

const Money = ({ wallet }: { readonly wallet: Schemas["Wallet"] }) => (
  <Tiles>
    <Tile name={walletTexts.available} isBad={isLow(wallet)}>
      <Credits amount={wallet.available_balance} />
    </Tile>
    <Tile name={walletTexts.settled}>
      <Credits amount={wallet.settled_balance} />
    </Tile>
    <Tile name={walletTexts.held}>
      <Credits amount={wallet.held_balance} />
    </Tile>
    <Tile name={walletTexts.threshold}>
      <Credits amount={wallet.trigger_threshold} />
    </Tile>
  </Tiles>
)

const limitOf = (limit: number | null): string =>
  limit === null ? operatorTexts.users.configured : String(limit)

const Details = ({ user }: { readonly user: User }) => (
  <dl class="pairs">
    <IdPair name={operatorTexts.all.userId} value={user.id} />
    <Pair name={words.rate}>{limitOf(user.rate_limit_per_minute)}</Pair>
    <Pair name={words.tasks}>{limitOf(user.concurrent_tasks)}</Pair>
    <Pair name={operatorTexts.users.created}>
      <Time at={user.created_at} />
    </Pair>
  </dl>
)

/** The latest audit entries about this user, including those that this page causes. */
const Latest = ({ user }: { readonly user: string }) => {
  const entries = useResource(`audit ${user}`, () =>
    api.GET("/manage/v1/audit-log", { query: { user_id: user, limit: latest } })
  )
  return (
    <Loaded of={entries}>
      {({ data }) => (
        <>
          <Table caption={words.latest} columns={auditColumns} rows={data} idOf={({ id }) => id} />
          <p>
            <Link to="/audit-log" query={{ of_user: user }}>
              {words.allEntries}
            </Link>
          </p>
        </>
      )}
    </Loaded>
  )
}
