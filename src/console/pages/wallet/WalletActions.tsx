import { useState } from "preact/hooks"
import { api, dataOf } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"
import { session } from "../../api/session.ts"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { AmountDialog } from "./AmountDialog.tsx"
import type { Amount } from "./AmountDialog.tsx"

const words = texts.wallet

interface Props {
  readonly wallet: Schemas["Wallet"]
  readonly onChanged: () => void
}

/** The threshold is the user's; money comes from the operator, who looks at the user's wallet. */
export const WalletActions = ({ onChanged, wallet }: Props) => {
  const [asked, setAsked] = useState<"threshold" | "top-up" | "adjustment" | undefined>(undefined)
  const user = viewedUser()
  const isOperator = session.value?.role === "operator" && user !== undefined
  const close = () => setAsked(undefined)
  const ask = (what: typeof asked) => () => setAsked(what)
  return (
    <>
      {isOperator && (
        <>
          <button type="button" class="primary" onClick={ask("top-up")}>
            {words.topUp}
          </button>
          <button type="button" onClick={ask("adjustment")}>
            {words.adjust}
          </button>
        </>
      )}
      <button type="button" onClick={ask("threshold")}>
        {words.setThreshold}
      </button>
      {asked === "threshold" && (
        <AmountDialog
          title={words.setThreshold}
          help={words.thresholdHelp}
          action={texts.save}
          initial={wallet.trigger_threshold}
          onSubmit={async (amount) => {
            await setThreshold(isOperator ? user : undefined, amount)
            onChanged()
          }}
          onClose={close}
        />
      )}
      {asked === "top-up" && user !== undefined && (
        <AmountDialog
          title={words.topUpTitle}
          help={words.topUpHelp}
          action={words.topUp}
          note="optional"
          onSubmit={async (amount) => {
            await topUp(user, amount)
            onChanged()
          }}
          onClose={close}
        />
      )}
      {asked === "adjustment" && user !== undefined && (
        <AmountDialog
          title={words.adjustTitle}
          help={words.adjustHelp}
          action={words.adjust}
          note="required"
          onSubmit={async (amount) => {
            await adjust(user, amount)
            onChanged()
          }}
          onClose={close}
        />
      )}
    </>
  )
}

const setThreshold = (user: string | undefined, { amount }: Amount): Promise<unknown> => {
  const body = { trigger_threshold: amount }
  return user === undefined
    ? dataOf(api.PATCH("/manage/v1/wallet", { body }))
    : dataOf(api.PATCH("/manage/v1/users/{id}", { params: { path: { id: user } }, body }))
}

const paramsOf = (user: string, operation: string) => ({
  path: { id: user },
  header: { "Idempotency-Key": operation }
})

const topUp = (user: string, { amount, note, operation }: Amount) =>
  dataOf(
    api.POST("/manage/v1/users/{id}/top-ups", {
      params: paramsOf(user, operation),
      body: { amount, ...(note === "" ? {} : { note }) }
    })
  )

const adjust = (user: string, { amount, note, operation }: Amount) =>
  dataOf(
    api.POST("/manage/v1/users/{id}/adjustments", {
      params: paramsOf(user, operation),
      body: { amount, note }
    })
  )
