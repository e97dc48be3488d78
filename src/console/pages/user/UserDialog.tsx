import { useState } from "preact/hooks"
import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
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
  const [fields, setFields] = useState(() => fieldsOf(of))
  const set = (name: keyof UserFields) => (text: string) =>
    setFields((before) => ({ ...before, [name]: text }))
  const isNew = of === undefined
  const faults = faultsOf(fields, isNew)
  const submit = async () => {
    if (faults.size > 0) throw new FormFault()
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
        value={fields.email}
        onText={set("email")}
      />
      <TextField
        label={words.name}
        autocomplete="off"
        maxLength={200}
        value={fields.name}
        onText={set("name")}
      />
      <TextField
        label={words.password}
        help={isNew ? words.newPasswordHelp : words.passwordHelp}
        type="password"
        autocomplete="new-password"
        maxLength={1000}
        value={fields.password}
        onText={set("password")}
      />
      {!isNew && <Limits fields={fields} faults={faults} set={set} />}
    </DialogForm>
  )
}

interface LimitsProps {
  readonly fields: UserFields
  readonly faults: ReadonlyMap<string, string>
  readonly set: (name: keyof UserFields) => (text: string) => void
}

const Limits = ({ faults, fields, set }: LimitsProps) => (
  <div class="columns narrow-columns">
    <TextField
      label={words.threshold}
      inputMode="decimal"
      error={faults.get("threshold")}
      value={fields.threshold}
      onText={set("threshold")}
    />
    <TextField
      label={words.rate}
      help={words.limitHelp}
      inputMode="numeric"
      error={faults.get("rate")}
      value={fields.rate}
      onText={set("rate")}
    />
    <TextField
      label={words.tasks}
      help={words.limitHelp}
      inputMode="numeric"
      error={faults.get("tasks")}
      value={fields.tasks}
      onText={set("tasks")}
    />
  </div>
)
