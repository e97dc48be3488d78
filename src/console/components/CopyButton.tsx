import { useState } from "preact/hooks"
import { texts } from "../texts/en.ts"

interface Props {
  readonly text: string
  /** What is copied, for those who do not see where the button stands. */
  readonly what: string
  readonly label?: string
}

const shownMillis = 2000

type State = "ready" | "copied" | "refused"

export const CopyButton = ({ label = texts.copy, text, what }: Props) => {
  const [state, setState] = useState<State>("ready")
  const copy = async (button: HTMLElement) => {
    setState((await copyText(text, button)) ? "copied" : "refused")
    setTimeout(() => setState("ready"), shownMillis)
  }
  const shown = { ready: label, copied: texts.copied, refused: texts.notCopied }
  return (
    <button
      type="button"
      class="small"
      aria-label={label === texts.copy && state === "ready" ? texts.copyWhat(what) : undefined}
      onClick={({ currentTarget }) => void copy(currentTarget)}
    >
      <span aria-live="polite">{shown[state]}</span>
    </button>
  )
}

/** Without https a browser has no clipboard for scripts, and it may refuse it: then by a selection. */
const copyText = async (text: string, button: HTMLElement): Promise<boolean> => {
  if (globalThis.isSecureContext) {
    const isWritten = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false
    )
    if (isWritten) return true
  }
  const field = document.createElement("textarea")
  field.value = text
  // Beside the button: what is outside of an open dialog cannot be selected
  button.after(field)
  field.select()
  const isCopied = document.execCommand("copy")
  field.remove()
  button.focus()
  return isCopied
}
