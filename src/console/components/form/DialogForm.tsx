import type { ComponentChildren, TargetedSubmitEvent } from "preact"
import { useRef, useState } from "preact/hooks"
import { texts } from "../../texts/en.ts"
import { ProblemView } from "../States.tsx"
import { Dialog } from "./Dialog.tsx"

interface Props {
  readonly title: string
  /** The label of the submit button. */
  readonly action: string
  readonly isDangerous?: boolean
  /** On success the dialog closes; a failure is shown in it, and the input is kept. */
  readonly onSubmit: () => Promise<void>
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** The faults are already shown at the fields. */
export class FormFault extends Error {}

/** A form in a dialog. */
export const DialogForm = (props: Props) => {
  const { action, children, isDangerous = false, onClose, onSubmit, title } = props
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const form = useRef<HTMLFormElement>(null)
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      await onSubmit()
      onClose()
    } catch (cause) {
      setState(cause instanceof FormFault ? { isBusy: false } : { isBusy: false, cause })
      // By then the fields have been rendered
      setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus())
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={form} onSubmit={(event) => void submit(event)}>
        {children}
        {state.cause !== undefined && <ProblemView cause={state.cause} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            {texts.cancel}
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={state.isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
