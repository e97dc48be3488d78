import { useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { service } from "../../api/session.ts"
import { Mark } from "../../components/Icon.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { texts } from "../../texts/en.ts"
import { signInTexts } from "../../texts/en/signIn.ts"
import { PasskeySignIn } from "./PasskeySignIn.tsx"
import { PasswordForm, SecretForm, SignInForm } from "./SignInForms.tsx"

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
      <p class="brand">
        <Mark />
        {texts.product}
      </p>
      {token === undefined ? (
        <SignInForms />
      ) : (
        <ByLink token={token} onOther={() => setToken(undefined)} />
      )}
    </main>
  )
}

interface ByLinkProps {
  readonly token: string
  readonly onOther: () => void
}

/** By a click: no program that opens links uses it up, and nobody is signed in by opening one. */
const ByLink = ({ onOther, token }: ByLinkProps) => (
  <>
    <PageHeader title={signInTexts.linkTitle} />
    <p>{signInTexts.linkDetail}</p>
    <SignInForm label={signInTexts.withLink} credential={() => ({ link: token })} isPrimary />
    <p>
      <button type="button" class="small" onClick={onOther}>
        {signInTexts.linkOther}
      </button>
    </p>
  </>
)

const SignInForms = () => {
  const isBack = new URLSearchParams(globalThis.location.search).has("next")
  return (
    <>
      <PageHeader title={signInTexts.title} />
      {isBack && <p class="faint">{signInTexts.ended}</p>}
      {service.value?.oidc === true && (
        <p>
          <a class="button wide-button" href={`${basePath}/manage/v1/session/oidc`}>
            {signInTexts.oidc}
          </a>
        </p>
      )}
      <PasswordForm />
      <PasskeySignIn />
      <SecretForm />
    </>
  )
}
