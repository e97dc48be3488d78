import { api } from "../../api/client.ts"
import type { Schemas } from "../../api/schema.ts"
import { DialogButton } from "../../components/form/DialogForm.tsx"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { walletTexts } from "../../texts/en/wallet.ts"
import { AmountDialog } from "./AmountDialog.tsx"

const words = walletTexts

interface Props {
  readonly wallet: Schemas["Wallet"]
  readonly onChanged: () => void
}

/** The threshold belongs to the user. An operator viewing as a user cannot change anything. */
export const WalletActions = ({ onChanged, wallet }: Props) => {
  if (viewedUser() !== undefined) return null
  return (
    <DialogButton label={words.setThreshold}>
      {(close) => (
        <AmountDialog
          title={words.setThreshold}
          help={words.thresholdHelp}
          action={texts.save}
          initial={wallet.trigger_threshold}
          onSubmit={async ({ amount }) => {
            const body = { trigger_threshold: amount }
            await api.PATCH("/manage/v1/wallet", { body })
            onChanged()
          }}
          onClose={close}
        />
      )}
    </DialogButton>
  )
}
