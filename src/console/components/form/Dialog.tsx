import type { ComponentChildren } from "preact"
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import { openDialogs } from "../../api/session.ts"
import { texts } from "../../texts/en.ts"
import { ProblemView } from "../States.tsx"

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  /** The content is shown only once, so Escape does not close the dialog. */
  readonly isKept?: boolean
  readonly children: ComponentChildren
}

/** The browser's own dialog, which traps the focus and closes on Escape. */
export const Dialog = ({ children, isKept = false, onClose, title }: DialogProps) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before the next key, which belongs to the dialog
  useLayoutEffect(() => {
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
      // Chromium closes the dialog on a second Escape although the first was prevented
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
  /** The label of the confirming button. */
  readonly action: string
  readonly isDangerous?: boolean
  /** On success another dialog replaces this one. */
  readonly isFollowed?: boolean
  /** On success the dialog closes; a failure is shown in it. */
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}

/** Asks for confirmation of an action that costs money or cannot be undone. */
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
