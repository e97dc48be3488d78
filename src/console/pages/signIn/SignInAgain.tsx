import { leave } from "../../api/session.ts"
import { Dialog } from "../../components/form/Dialog.tsx"
import { texts } from "../../texts/en.ts"
import { PasswordForm, SecretForm } from "./SignInForms.tsx"

/** Above a dialog whose session has ended; what was typed in it stays. */
export const SignInAgain = () => (
  <Dialog title={texts.signIn.again} onClose={leave} isKept>
    <p>{texts.signIn.againDetail}</p>
    <PasswordForm />
    <SecretForm />
    <p>
      <button type="button" class="small" onClick={leave}>
        {texts.signIn.discard}
      </button>
    </p>
  </Dialog>
)
