import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import { openDialogs } from "../../api/session.ts"
import { texts } from "../../texts/en.ts"
import { ProblemView } from "../States.tsx"

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  /** What it shows is shown this once: Escape does not close it. */
  readonly isKept?: boolean
  readonly children: ComponentChildren
}

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. */
export const Dialog = ({ children, isKept = false, onClose, title }: DialogProps) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    dialog.current?.showModal()
    openDialogs.value += 1
    return () => {
      openDialogs.value -= 1
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      // Chromium lets a second Escape through in spite of a refused one
      onKeyDown={(event) => {
        if (isKept && event.key === "Escape") event.preventDefault()
      }}
      onCancel={(event) => {
        if (isKept) event.preventDefault()
      }}
      onClose={onClose}
    >
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
  /** Another dialog takes its place when it has succeeded. */
  readonly isFollowed?: boolean
  /** The dialog closes when it has succeeded; a failure is shown in it. */
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}

/** Asks before something is done that costs or cannot be undone. */
export const Confirm = ({
  action,
  detail,
  isDangerous = false,
  isFollowed = false,
  onClose,
  onConfirm,
  title
}: ConfirmProps) => {
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const confirm = async () => {
    setState({ isBusy: true })
    try {
      await onConfirm()
      if (!isFollowed) onClose()
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
