import type { ComponentChildren, TargetedSubmitEvent } from "preact"
import { useRef, useState } from "preact/hooks"
import { texts } from "../../texts/en.ts"
import { ProblemView } from "../States.tsx"
import { Dialog } from "./Dialog.tsx"

interface Props {
  readonly title: string
  /** What the button that does it says. */
  readonly action: string
  readonly isDangerous?: boolean
  /** The dialog closes when it has succeeded; a failure is shown in it, and what was filled in stays. */
  readonly onSubmit: () => Promise<void>
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** What is wrong is said at the fields already. */
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
      // The fields have been drawn by then
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
