import { useState } from "preact/hooks"
import { api, dataOf } from "../../api/client.ts"
import { pageAfter } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { Link } from "../../components/Link.tsx"
import { PagedTable } from "../../components/PagedTable.tsx"
import type { Column } from "../../components/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { Time } from "../../components/Values.tsx"
import { hrefOf, navigate } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { UserDialog } from "../user/UserDialog.tsx"
import { newUserOf } from "../user/userForm.ts"
import { UserState } from "../user/UserState.tsx"

type User = Schemas["User"]

const words = operatorTexts.users
const pageSize = 50

const Limits = ({ concurrent_tasks: tasks, rate_limit_per_minute: rate }: User) =>
  rate === null && tasks === null ? (
    <span class="faint">{words.configured}</span>
  ) : (
    <>
      {rate !== null && <div>{texts.keys.perMinute(rate)}</div>}
      {tasks !== null && <div>{texts.keys.atOnce(tasks)}</div>}
    </>
  )

const columns: ReadonlyArray<Column<User>> = [
  {
    title: words.user,
    cell: ({ email, id, name }) => (
      <>
        <Link to={`/users/${id}`}>{email}</Link>
        {name !== null && <div class="faint">{name}</div>}
      </>
    )
  },
  { title: words.state, cell: (user) => <UserState of={user} /> },
  { title: words.limits, cell: (user) => <Limits {...user} /> },
  { title: words.created, cell: ({ created_at: at }) => <Time at={at} /> },
  {
    title: texts.actions,
    cell: ({ email, id }) => (
      <Link to="/" query={{ user_id: id }}>
        {words.viewAs}
        <span class="hidden"> {email}</span>
      </Link>
    )
  }
]

/** `/users`: everybody who may have keys and credits. */
export default function UsersPage() {
  const users = usePages<User>(
    "users",
    (cursor) =>
      dataOf(api.GET("/manage/v1/users", { params: { query: pageAfter(pageSize, cursor) } })),
    ({ id }) => id
  )
  const [isCreating, setCreating] = useState(false)
  return (
    <>
      <PageHeader title={words.title}>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          {words.create}
        </button>
      </PageHeader>
      <PagedTable
        caption={words.caption}
        columns={columns}
        pages={users}
        idOf={({ id }) => id}
        empty={
          <Empty title={words.empty}>
            <p>{words.emptyDetail}</p>
          </Empty>
        }
      />
      {isCreating && (
        <UserDialog
          onSubmit={async (fields) => {
            const body = newUserOf(fields)
            const { id } = await dataOf(api.POST("/manage/v1/users", { body }))
            navigate(hrefOf(`/users/${id}`))
          }}
          onClose={() => setCreating(false)}
        />
      )}
    </>
  )
}
