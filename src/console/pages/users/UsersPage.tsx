import { useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { api } from "../../api/client.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { DialogButton } from "../../components/form/DialogForm.tsx"
import { choiceIn, Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { ProblemView } from "../../components/States.tsx"
import { Ago, Credits } from "../../components/Values.tsx"
import { parseCredits } from "../../format/credits.ts"
import { hrefOf, navigate } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { walletTexts } from "../../texts/en/wallet.ts"
import { MoneyDialog } from "../user/MoneyActions.tsx"
import { UserDialog } from "../user/UserDialog.tsx"
import { newUserOf } from "../user/userForm.ts"
import { UserState } from "../user/UserState.tsx"

type User = Schemas["ListedUser"]

const words = operatorTexts.users
const states = ["active", "disabled", "alerted", "negative"] as const
const sorts = ["balance", "spent"] as const

const filters: ReadonlyArray<Filter> = [
  { name: "q", label: words.search, kind: "search" },
  {
    name: "state",
    label: words.state,
    kind: "segments",
    options: states.map((it) => [it, words[it]])
  },
  {
    name: "sort",
    label: words.sort,
    kind: "segments",
    all: words.newest,
    options: [
      ["balance", words.lowest],
      ["spent", words.spent]
    ]
  }
]

const columnsWith = (topUp: (user: User) => void): ReadonlyArray<Column<User>> => [
  {
    title: words.user,
    isPlain: true,
    cell: ({ email, id, name }) => (
      <>
        <Link to={`/users/${id}`}>{email}</Link>
        {name !== null && <span class="faint"> {name}</span>}
      </>
    )
  },
  { title: words.state, isPlain: true, isLead: true, cell: (user) => <UserState of={user} /> },
  {
    title: words.balance,
    isNumber: true,
    cell: ({ available_balance: balance }) => (
      <span class={parseCredits(balance) < 0n ? "loss" : undefined}>
        <Credits amount={balance} />
      </span>
    )
  },
  {
    title: words.spent,
    isNumber: true,
    cell: ({ spent_this_month: spent }) => <Credits amount={spent} />
  },
  {
    title: words.created,
    isNumber: true,
    isAbout: true,
    cell: ({ created_at: at }) => <Ago at={at} />
  },
  {
    title: texts.actions,
    isEnd: true,
    cell: (user) => (
      <span class="row-actions">
        <button type="button" class="small" onClick={() => topUp(user)}>
          {walletTexts.operator.topUp}
          <span class="hidden"> {user.email}</span>
        </button>
        <Link to="/" query={{ user_id: user.id }} class="button small">
          {words.viewAs}
          <span class="hidden"> {user.email}</span>
        </Link>
      </span>
    )
  }
]

/** `/users`: everyone who can have keys and credits. */
export default function UsersPage() {
  const search = {
    ...filterValues(["q"]),
    ...choiceIn("state", states),
    ...choiceIn("sort", sorts)
  }
  const users = usePages("users", search, (page) =>
    api.GET("/manage/v1/users", { query: { ...search, ...page } })
  )
  const [toppedUp, setToppedUp] = useState<{ user: User; wallet: Schemas["Wallet"] } | undefined>()
  const { cause, run } = useAction()
  const askTopUp = async (user: User) => {
    const wallet = await api.GET("/manage/v1/users/{id}/wallet", { path: { id: user.id } })
    setToppedUp({ user, wallet })
  }
  return (
    <>
      <PageHeader>
        <DialogButton label={words.create} class="primary">
          {(close) => (
            <UserDialog
              onSubmit={async (fields) => {
                const body = newUserOf(fields)
                const { id } = await api.POST("/manage/v1/users", { body })
                navigate(hrefOf(`/users/${id}`))
              }}
              onClose={close}
            />
          )}
        </DialogButton>
      </PageHeader>
      <Filters filters={filters} />
      <PagedTable
        words={words}
        search={search}
        columns={columnsWith((user) => void run(() => askTopUp(user)))}
        pages={users}
      />
      {cause !== undefined && <ProblemView cause={cause} />}
      {toppedUp !== undefined && (
        <MoneyDialog
          kind="topUp"
          {...toppedUp}
          onChanged={users.reload}
          onClose={() => setToppedUp(undefined)}
        />
      )}
    </>
  )
}
