import type { ComponentChildren } from "preact"
import { useMemo, useState } from "preact/hooks"
import { newOperationId } from "../../api/operations.ts"
import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
import { isCredits } from "../../format/credits.ts"
import { texts } from "../../texts/en.ts"
import { walletTexts } from "../../texts/en/wallet.ts"

export interface Amount {
  readonly amount: string
  readonly note: string
  /** The operation id, which stays the same for the same amount and note, so that a retry has no effect. */
  readonly operation: string
}

interface Props {
  readonly title: string
  readonly help: string
  readonly action: string
  readonly initial?: string
  /** Explains the effect of the amount while it is typed. */
  readonly about?: (amount: string) => ComponentChildren
  /** Whether a note is required. Absent: there is no note. */
  readonly note?: "optional" | "required"
  readonly onSubmit: (amount: Amount) => Promise<void>
  readonly onClose: () => void
}

/** Asks for an amount of credits. */
export const AmountDialog = ({
  about,
  action,
  help,
  initial = "",
  note: noteKind,
  onClose,
  onSubmit,
  title
}: Props) => {
  const [amount, setAmount] = useState(initial)
  const [note, setNote] = useState("")
  const operation = useMemo(newOperationId, [amount, note])
  const trimmed = amount.trim()
  const isFaulty = trimmed !== "" && !isCredits(trimmed)
  const submit = async () => {
    if (isFaulty) throw new FormFault()
    await onSubmit({ amount: trimmed, note: note.trim(), operation })
  }
  return (
    <DialogForm title={title} action={action} onSubmit={submit} onClose={onClose}>
      <TextField
        label={walletTexts.amount}
        help={help}
        error={isFaulty ? texts.form.noAmount : undefined}
        required
        inputMode="decimal"
        autocomplete="off"
        value={amount}
        onText={setAmount}
      />
      {about !== undefined && <p class="about-amount">{about(isFaulty ? "" : trimmed)}</p>}
      {noteKind !== undefined && (
        <TextField
          label={walletTexts.note}
          help={walletTexts.noteHelp}
          required={noteKind === "required"}
          maxLength={500}
          value={note}
          onText={setNote}
        />
      )}
    </DialogForm>
  )
}
