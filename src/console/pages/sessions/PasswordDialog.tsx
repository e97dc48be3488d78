import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { session } from "../../api/session.ts"
import { DialogForm, FormFault } from "../../components/form/DialogForm.tsx"
import { TextField } from "../../components/form/Field.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"

const words = operatorTexts.sessions

const charactersMin = 8

interface Props {
  readonly onChanged: () => void
  readonly onClose: () => void
}

/** Sets a new password for the signed-in user. */
export const PasswordDialog = ({ onChanged, onClose }: Props) => {
  const [current, setCurrent] = useState("")
  const [password, setPassword] = useState("")
  const [isTried, setTried] = useState(false)
  const isShort = [...password].length < charactersMin
  const change = async () => {
    setTried(true)
    if (isShort) throw new FormFault()
    const body = { password, ...(current === "" ? {} : { current_password: current }) }
    session.value = await api.POST("/manage/v1/session/password", { body })
    onChanged()
  }
  return (
    <DialogForm
      title={words.passwordTitle}
      action={words.changePassword}
      onSubmit={change}
      onClose={onClose}
    >
      <TextField
        label={words.currentPassword}
        help={words.currentHelp}
        type="password"
        autocomplete="current-password"
        value={current}
        onText={setCurrent}
      />
      <TextField
        label={words.newPassword}
        help={words.newHelp}
        type="password"
        autocomplete="new-password"
        value={password}
        onText={setPassword}
        error={isTried && isShort ? words.short : undefined}
      />
    </DialogForm>
  )
}
