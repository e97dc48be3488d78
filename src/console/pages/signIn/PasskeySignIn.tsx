import { useAction } from "../../api/action.ts"
import { hasPasskeys, NoPasskey, signInWithPasskey } from "../../api/passkeys.ts"
import { ProblemView } from "../../components/States.tsx"
import { signInTexts } from "../../texts/en/signIn.ts"

/** The browser knows whose passkey it is, so nothing has to be typed. */
export const PasskeySignIn = () => {
  const { cause, isBusy, run } = useAction()
  if (!hasPasskeys()) return null
  return (
    <div class="by-passkey">
      <button
        type="button"
        class="wide-button"
        disabled={isBusy}
        onClick={() => void run(signInWithPasskey)}
      >
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
