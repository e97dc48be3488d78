import { useState } from "preact/hooks"
import { api, dataOf } from "../../api/client.ts"
import { texts } from "../../texts/en.ts"
import { AmountDialog } from "../wallet/AmountDialog.tsx"
import type { Amount } from "../wallet/AmountDialog.tsx"

const words = texts.wallet

interface Props {
  readonly user: string
  readonly onChanged: () => void
}

/** Money comes from the operator. */
export const MoneyActions = ({ onChanged, user }: Props) => {
  const [asked, setAsked] = useState<"top-up" | "adjustment" | undefined>(undefined)
  const close = () => setAsked(undefined)
  return (
    <>
      <button type="button" class="primary" onClick={() => setAsked("top-up")}>
        {words.topUp}
      </button>
      <button type="button" onClick={() => setAsked("adjustment")}>
        {words.adjust}
      </button>
      {asked === "top-up" && (
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
      {asked === "adjustment" && (
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
