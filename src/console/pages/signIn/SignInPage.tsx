import { useState } from "preact/hooks"
import { basePath } from "../../api/address.ts"
import { service } from "../../api/session.ts"
import { Mark } from "../../components/Icon.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { texts } from "../../texts/en.ts"
import { signInTexts } from "../../texts/en/signIn.ts"
import { PasskeySignIn } from "./PasskeySignIn.tsx"
import { PasswordForm, SecretForm, SignInForm } from "./SignInForms.tsx"

/** The secret of a sign-in link. It is removed from the address at once, so that it does not stay in the history. */
const takeToken = (): string | undefined => {
  const token = new URLSearchParams(globalThis.location.hash.slice(1)).get("token") ?? undefined
  if (token !== undefined) {
    const { pathname, search } = globalThis.location
    history.replaceState(null, "", pathname + search)
  }
  return token
}

/** Sign-in by link, password, key, token or OpenID provider. docs/reference/sessions.md */
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

/** Signs in only on a click, so that programs that open links do not use it up and opening a link signs nobody in. */
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
