import { useEffect, useRef } from "preact/hooks"

/** Ctrl or ⌘ with Enter submits the form from any of its fields. */
export const useCtrlEnter = () => {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    const { current } = form
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      current?.requestSubmit()
    }
    current?.addEventListener("keydown", onKey)
    return () => current?.removeEventListener("keydown", onKey)
  }, [])
  return form
}
