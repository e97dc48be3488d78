import { useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { api } from "../../api/client.ts"
import { usePoll } from "../../api/poll.ts"
import { useResource } from "../../api/resource.ts"
import { Confirm } from "../../components/form/DialogForm.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded, ProblemView } from "../../components/States.tsx"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { accountColumns } from "./accountColumns.tsx"
import type { Account } from "./accountColumns.tsx"

const words = operatorTexts.accounts

const pathOf = ({ id }: Account) => ({ path: { id } })

/** `/accounts`: the vendor accounts, with actions to drain and resume them. */
export default function AccountsPage() {
  const accounts = useResource("accounts", () => api.GET("/manage/v1/accounts", {}))
  usePoll(accounts.reload)
  const [drained, setDrained] = useState<Account | undefined>(undefined)
  const [said, setSaid] = useState("")
  const { cause, run } = useAction()
  const act = {
    drain: (account: Account) => setDrained(account),
    resume: (account: Account) => {
      setSaid("")
      void run(() => resume(account)).then(accounts.reload)
    },
    check: (account: Account) => {
      setSaid(words.checking(account.id))
      void run(async () => setSaid(await check(account))).then(accounts.reload)
    }
  }
  return (
    <>
      <PageHeader about={words.about} />
      <div role="status">{said !== "" && cause === undefined && <p>{said}</p>}</div>
      {cause !== undefined && <ProblemView cause={cause} />}
      <Loaded of={accounts}>
        {({ data }) => (
          <Table
            caption={words.caption}
            columns={[...accountColumns, actionsColumn(act)]}
            rows={data}
            idOf={({ id }) => id}
            empty={<Empty title={words.empty} detail={words.emptyDetail} />}
          />
        )}
      </Loaded>
      {drained !== undefined && (
        <Confirm
          title={words.drainTitle(drained.id)}
          detail={words.drainDetail}
          action={words.drain}
          isDangerous
          onSubmit={async () => {
            await api.POST("/manage/v1/accounts/{id}/drain", pathOf(drained))
            accounts.reload()
          }}
          onClose={() => setDrained(undefined)}
        />
      )}
    </>
  )
}

const resume = (account: Account) => api.POST("/manage/v1/accounts/{id}/resume", pathOf(account))

/** The outcome of a check. */
const check = async (account: Account): Promise<string> => {
  const found = await api.POST("/manage/v1/accounts/{id}/check", pathOf(account))
  if (found.ok) return words.checkGood(account.id, found.duration_ms)
  const status = found.http_status === null ? null : words.httpStatus(found.http_status)
  const what = [status, found.detail].filter((it) => it !== null).join(", ")
  return words.checkBad(account.id, what)
}

type Act = Readonly<Record<"drain" | "resume" | "check", (account: Account) => void>>

const actionsColumn = (act: Act): Column<Account> => ({
  title: texts.actions,
  isEnd: true,
  cell: (account) => (
    <div class="row-actions">
      {([account.status === "draining" ? "resume" : "drain", "check"] as const).map((what) => (
        <button
          key={what}
          type="button"
          class={what === "drain" ? "small danger" : "small"}
          aria-label={texts.actionOn(words[what], account.id)}
          onClick={() => act[what](account)}
        >
          {words[what]}
        </button>
      ))}
    </div>
  )
})
