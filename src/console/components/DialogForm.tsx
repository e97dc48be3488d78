import type { ComponentChildren, TargetedSubmitEvent } from "preact"
import { useState } from "preact/hooks"
import { texts } from "../texts/en.ts"
import { Dialog } from "./Dialog.tsx"
import { ProblemView } from "./States.tsx"

interface Props {
  readonly title: string
  /** What the button that does it says. */
  readonly action: string
  /** The dialog closes when it has succeeded; a failure is shown in it, and what was filled in stays. */
  readonly onSubmit: () => Promise<void>
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A form in a dialog. */
export const DialogForm = ({ action, children, onClose, onSubmit, title }: Props) => {
  const [state, setState] = useState<{ isBusy: boolean; cause?: unknown }>({ isBusy: false })
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    setState({ isBusy: true })
    try {
      await onSubmit()
      onClose()
    } catch (cause) {
      setState({ isBusy: false, cause })
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        {children}
        {state.cause !== undefined && <ProblemView cause={state.cause} />}
        <div class="actions">
          <button type="button" onClick={onClose}>
            {texts.cancel}
          </button>
          <button type="submit" class="primary" disabled={state.isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
