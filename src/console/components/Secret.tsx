import type { ComponentChildren } from "preact"
import { texts } from "../texts/en.ts"
import { CopyButton } from "./CopyButton.tsx"
import { Dialog } from "./form/Dialog.tsx"

interface Props {
  readonly title: string
  readonly detail: string
  /** The name of the secret, such as “API key”. */
  readonly what: string
  readonly secret: string
  /** How to use it first. */
  readonly children?: ComponentChildren
  readonly onClose: () => void
}

/** Shows a secret once. It is not stored anywhere; closing the dialog discards it. */
export const SecretDialog = ({ children, detail, onClose, secret, title, what }: Props) => (
  <Dialog title={title} onClose={onClose} isKept>
    <p>{detail}</p>
    <p class="secret">
      <code>{secret}</code>
      <CopyButton text={secret} what={what} />
    </p>
    <p class="faint">{texts.secretOnce}</p>
    {children}
    <div class="actions">
      <button type="button" class="primary" onClick={onClose}>
        {texts.secretKept}
      </button>
    </div>
  </Dialog>
)
