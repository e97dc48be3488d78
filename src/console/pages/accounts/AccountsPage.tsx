import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { usePoll } from "../../api/poll.ts"
import { useResource } from "../../api/resource.ts"
import { Confirm } from "../../components/form/Dialog.tsx"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty, Loaded, ProblemView } from "../../components/States.tsx"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { accountColumns } from "./accountColumns.tsx"
import type { Account } from "./accountColumns.tsx"

const words = operatorTexts.accounts

/** The outcome of the last check or resume. */
type Outcome = { readonly said: string } | { readonly cause: unknown } | undefined

const pathOf = ({ id }: Account) => ({ path: { id } })

/** `/accounts`: the vendor accounts, with actions to drain and resume them. */
export default function AccountsPage() {
  const accounts = useResource("accounts", () => api.GET("/manage/v1/accounts", {}))
  usePoll(accounts.reload)
  const [drained, setDrained] = useState<Account | undefined>(undefined)
  const [outcome, setOutcome] = useState<Outcome>(undefined)
  const act = {
    drain: (account: Account) => setDrained(account),
    resume: (account: Account) => {
      void resume(account).then(setOutcome).then(accounts.reload)
    },
    check: (account: Account) => {
      setOutcome({ said: words.checking(account.id) })
      void check(account).then(setOutcome).then(accounts.reload)
    }
  }
  return (
    <>
      <PageHeader title={words.title} about={words.about} />
      <div role="status">{outcome !== undefined && "said" in outcome && <p>{outcome.said}</p>}</div>
      {outcome !== undefined && "cause" in outcome && <ProblemView cause={outcome.cause} />}
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
          onConfirm={async () => {
            await api.POST("/manage/v1/accounts/{id}/drain", pathOf(drained))
            accounts.reload()
          }}
          onClose={() => setDrained(undefined)}
        />
      )}
    </>
  )
}

const resume = async (account: Account): Promise<Outcome> => {
  try {
    await api.POST("/manage/v1/accounts/{id}/resume", pathOf(account))
    return undefined
  } catch (cause) {
    return { cause }
  }
}

const check = async (account: Account): Promise<Outcome> => {
  try {
    const found = await api.POST("/manage/v1/accounts/{id}/check", pathOf(account))
    if (found.ok) return { said: words.checkGood(account.id, found.duration_ms) }
    const status = found.http_status === null ? null : words.httpStatus(found.http_status)
    const what = [status, found.detail].filter((it) => it !== null).join(", ")
    return { said: words.checkBad(account.id, what) }
  } catch (cause) {
    return { cause }
  }
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
          aria-label={words.actionOn(words[what], account.id)}
          onClick={() => act[what](account)}
        >
          {words[what]}
        </button>
      ))}
    </div>
  )
})
