import type { ComponentChildren, TargetedSubmitEvent } from "preact"
import { useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { credentialOf, service, signIn } from "../../api/session.ts"
import type { Credential } from "../../api/session.ts"
import { TextField } from "../../components/Field.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { ProblemView } from "../../components/States.tsx"
import { texts } from "../../texts/en.ts"

/** The secret of a sign-in link. It leaves the address at once, so that no history has it. */
const takeToken = (): string | undefined => {
  const token = new URLSearchParams(globalThis.location.hash.slice(1)).get("token") ?? undefined
  if (token !== undefined) {
    const { pathname, search } = globalThis.location
    history.replaceState(null, "", pathname + search)
  }
  return token
}

/** By link, password, key or token, or an OpenID provider. docs/reference/sessions.md */
export const SignInPage = () => {
  const [token, setToken] = useState(takeToken)
  return (
    <main class="alone card">
      {token === undefined ? (
        <SignInForms />
      ) : (
        <ByLink token={token} onOther={() => setToken(undefined)} />
      )}
    </main>
  )
}

interface FormProps {
  readonly label: string
  /** What is exchanged. */
  readonly credential: () => Credential
  readonly isPrimary?: boolean
  readonly children?: ComponentChildren
}

const SignInForm = ({ children, credential, isPrimary = false, label }: FormProps) => {
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      await signIn(credential())
    } catch (cause) {
      setState({ isBusy: false, cause })
    }
  }
  return (
    <form onSubmit={(event) => void submit(event)}>
      {children}
      {state.cause !== undefined && <ProblemView cause={state.cause} />}
      <button type="submit" class={isPrimary ? "primary" : ""} disabled={state.isBusy}>
        {label}
      </button>
    </form>
  )
}

interface ByLinkProps {
  readonly token: string
  readonly onOther: () => void
}

/** By a click: no program that opens links uses it up, and nobody is signed in by opening one. */
const ByLink = ({ onOther, token }: ByLinkProps) => (
  <>
    <PageHeader title={texts.signIn.linkTitle} />
    <p>{texts.signIn.linkDetail}</p>
    <SignInForm label={texts.signIn.withLink} credential={() => ({ link: token })} isPrimary />
    <p>
      <button type="button" class="small" onClick={onOther}>
        {texts.signIn.linkOther}
      </button>
    </p>
  </>
)

const SignInForms = () => {
  const [email, setEmail] = useState("")
  const [password, setPassword] = useState("")
  const [secret, setSecret] = useState("")
  const isBack = new URLSearchParams(globalThis.location.search).has("next")
  return (
    <>
      <PageHeader title={texts.signIn.title} />
      {isBack && <p class="faint">{texts.signIn.ended}</p>}
      {service.value?.oidc === true && (
        <p>
          <a class="button primary" href={`${basePath}/manage/v1/session/oidc`}>
            {texts.signIn.oidc}
          </a>
        </p>
      )}
      <SignInForm
        label={texts.signIn.withPassword}
        credential={() => ({ email, password })}
        isPrimary
      >
        <TextField
          label={texts.signIn.email}
          type="email"
          autocomplete="username"
          required
          value={email}
          onText={setEmail}
        />
        <TextField
          label={texts.signIn.password}
          type="password"
          autocomplete="current-password"
          required
          value={password}
          onText={setPassword}
        />
      </SignInForm>
      <details class="other">
        <summary>{texts.signIn.other}</summary>
        <SignInForm label={texts.signIn.withSecret} credential={() => credentialOf(secret.trim())}>
          <TextField
            label={texts.signIn.secret}
            help={texts.signIn.secretHelp}
            type="password"
            autocomplete="off"
            required
            value={secret}
            onText={setSecret}
          />
        </SignInForm>
      </details>
    </>
  )
}
