import { useState } from "preact/hooks"
import { hasPasskeys, NoPasskey, signInWithPasskey } from "../../api/passkeys.ts"
import { ProblemView } from "../../components/States.tsx"
import { signInTexts } from "../../texts/en/signIn.ts"

/** The browser knows whose passkey it is, so nothing has to be typed. */
export const PasskeySignIn = () => {
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  if (!hasPasskeys()) return null
  const { cause, isBusy } = state
  const submit = async () => {
    setState({ isBusy: true })
    try {
      await signInWithPasskey()
    } catch (failure) {
      setState({ isBusy: false, cause: failure })
    }
  }
  return (
    <div class="by-passkey">
      <button type="button" class="wide-button" disabled={isBusy} onClick={() => void submit()}>
        {signInTexts.withPasskey}
      </button>
      {cause instanceof NoPasskey && (
        <p class="field-error" role="alert">
          {signInTexts.noPasskey}
        </p>
      )}
      {cause !== undefined && !(cause instanceof NoPasskey) && <ProblemView cause={cause} />}
    </div>
  )
}
