import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { credentialOf, signIn } from "../../api/session.ts"
import type { Credential } from "../../api/session.ts"
import { TextField } from "../../components/form/Field.tsx"
import { useFields } from "../../components/form/useFields.ts"
import { ProblemView } from "../../components/States.tsx"
import { signInTexts } from "../../texts/en/signIn.ts"

interface FormProps {
  readonly label: string
  /** The credential to exchange. */
  readonly credential: () => Credential
  readonly isPrimary?: boolean
  readonly children?: ComponentChildren
}

export const SignInForm = ({ children, credential, isPrimary = false, label }: FormProps) => {
  const { cause, isBusy, run } = useAction()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        void run(() => signIn(credential()))
      }}
    >
      {children}
      {cause !== undefined && <ProblemView cause={cause} />}
      <button type="submit" class={isPrimary ? "primary" : ""} disabled={isBusy}>
        {label}
      </button>
    </form>
  )
}

export const PasswordForm = () => {
  const { fields, text } = useFields(() => ({ email: "", password: "" }))
  return (
    <SignInForm label={signInTexts.withPassword} credential={() => fields} isPrimary>
      <TextField
        label={signInTexts.email}
        type="email"
        autocomplete="username"
        required
        {...text("email")}
      />
      <TextField
        label={signInTexts.password}
        type="password"
        autocomplete="current-password"
        required
        {...text("password")}
      />
    </SignInForm>
  )
}

export const SecretForm = () => {
  const [secret, setSecret] = useState("")
  return (
    <details class="other">
      <summary>{signInTexts.other}</summary>
      <SignInForm label={signInTexts.withSecret} credential={() => credentialOf(secret.trim())}>
        <TextField
          label={signInTexts.secret}
          help={signInTexts.secretHelp}
          type="password"
          autocomplete="off"
          required
          value={secret}
          onText={setSecret}
        />
      </SignInForm>
    </details>
  )
}
