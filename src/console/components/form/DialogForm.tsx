import type { ComponentChildren } from "preact"
import { useRef, useState } from "preact/hooks"
import { useAction } from "../../api/action.ts"
import { texts } from "../../texts/en.ts"
import { ProblemView } from "../States.tsx"
import { Dialog } from "./Dialog.tsx"

interface Props {
  readonly title: string
  /** The label of the submit button. */
  readonly action: string
  readonly isDangerous?: boolean
  /** On success another dialog replaces this one. */
  readonly isFollowed?: boolean
  /** On success the dialog closes; a failure is shown in it, and the input is kept. */
  readonly onSubmit: () => Promise<void>
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** The faults are already shown at the fields. */
export class FormFault extends Error {}

/** A form in a dialog. */
export const DialogForm = (props: Props) => {
  const { action, children, isDangerous = false, isFollowed = false } = props
  const { onClose, onSubmit, title } = props
  const { cause, isBusy, run } = useAction()
  const form = useRef<HTMLFormElement>(null)
  const submit = async () => {
    try {
      await onSubmit()
    } catch (failure) {
      // By then the fields have been rendered
      setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus())
      throw failure
    }
    if (!isFollowed) onClose()
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        ref={form}
        onSubmit={(event) => {
          event.preventDefault()
          void run(submit)
        }}
      >
        {children}
        {cause !== undefined && !(cause instanceof FormFault) && <ProblemView cause={cause} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            {texts.cancel}
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface ConfirmProps extends Omit<Props, "children"> {
  readonly detail: string
}

/** Asks for confirmation of an action that costs money or cannot be undone. */
export const Confirm = ({ detail, ...form }: ConfirmProps) => (
  <DialogForm {...form}>
    <p>{detail}</p>
  </DialogForm>
)

interface ButtonProps {
  readonly label: string
  readonly class?: "primary" | "danger"
  /** The dialog. */
  readonly children: (onClose: () => void) => ComponentChildren
}

/** A button that opens a dialog. */
export const DialogButton = ({ children, class: name, label }: ButtonProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class={name} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && children(() => setOpen(false))}
    </>
  )
}
