import { leave } from "../../api/session.ts"
import { Dialog } from "../../components/form/Dialog.tsx"
import { signInTexts } from "../../texts/en/signIn.ts"
import { PasskeySignIn } from "./PasskeySignIn.tsx"
import { PasswordForm, SecretForm } from "./SignInForms.tsx"

/** Shown above a dialog whose session has ended. The dialog keeps its input. */
export const SignInAgain = () => (
  <Dialog title={signInTexts.again} onClose={leave} isKept>
    <p>{signInTexts.againDetail}</p>
    <PasswordForm />
    <PasskeySignIn />
    <SecretForm />
    <p>
      <button type="button" class="small" onClick={leave}>
        {signInTexts.discard}
      </button>
    </p>
  </Dialog>
)
