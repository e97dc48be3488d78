import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"
import { Credits } from "../../components/Values.tsx"
import { parseCredits, textOfCredits } from "../../format/credits.ts"
import { walletTexts } from "../../texts/en/wallet.ts"
import { AmountDialog } from "../wallet/AmountDialog.tsx"
import type { Amount } from "../wallet/AmountDialog.tsx"
import type { User } from "./userForm.ts"

const words = walletTexts.operator

interface Props {
  readonly user: User
  readonly wallet: Schemas["Wallet"]
  readonly onChanged: () => void
}

/** The operator's actions on a wallet. */
export const MoneyActions = (props: Props) => {
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
      {asked === "top-up" && <TopUpDialog {...props} onClose={close} />}
      {asked === "adjustment" && <AdjustDialog {...props} onClose={close} />}
    </>
  )
}

/** The owner of the wallet, and the balance after the amount. */
const aboutWallet =
  ({ user, wallet }: Props) =>
  (amount: string) => (
    <>
      {words.of(user.email)} <Credits amount={wallet.available_balance} /> {words.available}
      {amount !== "" && (
        <>
          {words.becomes}
          <strong>
            <Credits
              amount={textOfCredits(parseCredits(wallet.available_balance) + parseCredits(amount))}
            />
          </strong>
        </>
      )}
    </>
  )

interface DialogProps extends Props {
  readonly onClose: () => void
}

export const TopUpDialog = (props: DialogProps) => (
  <AmountDialog
    title={words.topUpTitle}
    help={words.topUpHelp}
    action={words.topUp}
    note="optional"
    about={aboutWallet(props)}
    onSubmit={async (amount) => {
      await topUp(props.user.id, amount)
      props.onChanged()
    }}
    onClose={props.onClose}
  />
)

const AdjustDialog = (props: DialogProps) => (
  <AmountDialog
    title={words.adjustTitle}
    help={words.adjustHelp}
    action={words.adjust}
    note="required"
    about={aboutWallet(props)}
    onSubmit={async (amount) => {
      await adjust(props.user.id, amount)
      props.onChanged()
    }}
    onClose={props.onClose}
  />
)

const requestOf = (user: string, operation: string) => ({
  path: { id: user },
  header: { "Idempotency-Key": operation }
})

const topUp = (user: string, { amount, note, operation }: Amount) =>
  api.POST("/manage/v1/users/{id}/top-ups", {
    ...requestOf(user, operation),
    body: { amount, ...(note === "" ? {} : { note }) }
  })

const adjust = (user: string, { amount, note, operation }: Amount) =>
  api.POST("/manage/v1/users/{id}/adjustments", {
    ...requestOf(user, operation),
    body: { amount, note }
  })
