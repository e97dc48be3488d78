import type { ComponentChildren } from "preact"
import { useId, useLayoutEffect, useRef } from "preact/hooks"
import { openDialogs } from "../../api/session.ts"

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
