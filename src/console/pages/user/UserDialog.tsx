import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
import { useFields } from "../../components/form/useFields.ts"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { faultsOf, fieldsOf } from "./userForm.ts"
import type { User, UserFields } from "./userForm.ts"

const words = operatorTexts.user

interface Props {
  /** The user to change. Absent: a new user. */
  readonly of?: User
  readonly onSubmit: (fields: UserFields) => Promise<void>
  readonly onClose: () => void
}

/** The user's name and address and, for an existing user, the limits. */
export const UserDialog = ({ of, onClose, onSubmit }: Props) => {
  const isNew = of === undefined
  const { fields, isFaulty, text } = useFields(
    () => fieldsOf(of),
    (it) => faultsOf(it, isNew)
  )
  const submit = async () => {
    if (isFaulty) throw new FormFault()
    await onSubmit(fields)
  }
  return (
    <DialogForm
      title={isNew ? operatorTexts.users.create : words.changeTitle}
      action={isNew ? operatorTexts.users.create : texts.save}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={words.email}
        type="email"
        autocomplete="off"
        required
        maxLength={320}
        {...text("email")}
      />
      <TextField label={words.name} autocomplete="off" maxLength={200} {...text("name")} />
      <TextField
        label={words.password}
        help={isNew ? words.newPasswordHelp : words.passwordHelp}
        type="password"
        autocomplete="new-password"
        maxLength={1000}
        {...text("password")}
      />
      {!isNew && (
        <div class="columns narrow-columns">
          <TextField label={words.threshold} inputMode="decimal" {...text("threshold")} />
          <TextField
            label={words.rate}
            help={words.limitHelp}
            inputMode="numeric"
            {...text("rate")}
          />
          <TextField
            label={words.tasks}
            help={words.limitHelp}
            inputMode="numeric"
            {...text("tasks")}
          />
        </div>
      )}
    </DialogForm>
  )
}
