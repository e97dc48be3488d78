import { api } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"
import { DialogButton } from "../../components/form/DialogForm.tsx"
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
export const MoneyActions = (props: Props) => (
  <>
    <DialogButton label={words.topUp} class="primary">
      {(close) => <MoneyDialog {...props} kind="topUp" onClose={close} />}
    </DialogButton>
    <DialogButton label={words.adjust}>
      {(close) => <MoneyDialog {...props} kind="adjust" onClose={close} />}
    </DialogButton>
  </>
)

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

const requestOf = (user: User, operation: string) => ({
  path: { id: user.id },
  header: { "Idempotency-Key": operation }
})

const kinds = {
  topUp: {
    title: words.topUpTitle,
    help: words.topUpHelp,
    action: words.topUp,
    note: "optional",
    send: (user: User, { amount, note, operation }: Amount) =>
      api.POST("/manage/v1/users/{id}/top-ups", {
        ...requestOf(user, operation),
        body: { amount, ...(note === "" ? {} : { note }) }
      })
  },
  adjust: {
    title: words.adjustTitle,
    help: words.adjustHelp,
    action: words.adjust,
    note: "required",
    send: (user: User, { amount, note, operation }: Amount) =>
      api.POST("/manage/v1/users/{id}/adjustments", {
        ...requestOf(user, operation),
        body: { amount, note }
      })
  }
} as const

interface DialogProps extends Props {
  readonly kind: keyof typeof kinds
  readonly onClose: () => void
}

/** Asks for the amount, and sends it. */
export const MoneyDialog = ({ kind, onClose, ...props }: DialogProps) => {
  const { send, ...texts } = kinds[kind]
  return (
    <AmountDialog
      {...texts}
      about={aboutWallet(props)}
      onSubmit={async (amount) => {
        await send(props.user, amount)
        props.onChanged()
      }}
      onClose={onClose}
    />
  )
}
