import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { texts } from "../texts/en.ts"
import { ProblemView } from "./States.tsx"

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. */
export const Dialog = ({ children, onClose, title }: DialogProps) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  readonly detail: string
  /** What the button that does it says. */
  readonly action: string
  readonly isDangerous?: boolean
  /** The dialog closes when it has succeeded; a failure is shown in it. */
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}

/** Asks before something is done that costs or cannot be undone. */
export const Confirm = ({
  action,
  detail,
  isDangerous = false,
  onClose,
  onConfirm,
  title
}: ConfirmProps) => {
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const confirm = async () => {
    setState({ isBusy: true })
    try {
      await onConfirm()
      onClose()
    } catch (cause) {
      setState({ isBusy: false, cause })
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{detail}</p>
      {state.cause !== undefined && <ProblemView cause={state.cause} />}
      <div class="actions">
        <button type="button" onClick={onClose}>
          {texts.cancel}
        </button>
        <button
          type="button"
          class={isDangerous ? "danger" : "primary"}
          disabled={state.isBusy}
          onClick={() => void confirm()}
        >
          {action}
        </button>
      </div>
    </Dialog>
  )
}
