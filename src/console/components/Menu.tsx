import type { ComponentChildren, TargetedToggleEvent } from "preact"
import { useId, useRef } from "preact/hooks"

interface Props {
  /** The class of the button that opens the menu. */
  readonly class?: string
  /** The accessible name of a button that shows only an icon. */
  readonly label?: string
  readonly button: ComponentChildren
  readonly children: ComponentChildren
}

const gap = 4

/** Below the button, with right edges aligned, or above it where space is short. */
const place = (panel: HTMLElement, button: HTMLElement): void => {
  const { bottom, left, right, top } = button.getBoundingClientRect()
  const { height, width } = panel.getBoundingClientRect()
  const fitsBelow = bottom + gap + height <= globalThis.innerHeight
  panel.style.top = `${fitsBelow ? bottom + gap : Math.max(gap, top - gap - height)}px`
  panel.style.left = `${Math.max(gap, right - width < gap ? left : right - width)}px`
}

/**
 * A button with a list of actions. It is a popover: the browser closes it on Escape and on a click elsewhere, and shows
 * it on top, so that a table cannot clip it.
 */
export const Menu = ({ button, children, class: name, label }: Props) => {
  const id = useId()
  const opener = useRef<HTMLButtonElement>(null)
  const panel = useRef<HTMLDivElement>(null)
  const onToggle = (event: TargetedToggleEvent<HTMLDivElement>) => {
    if (event.newState === "open" && opener.current !== null) {
      place(event.currentTarget, opener.current)
    }
  }
  return (
    <>
      <button ref={opener} type="button" class={name} aria-label={label} popoverTarget={id}>
        {button}
      </button>
      {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- it hears the clicks of the buttons within */}
      <div
        ref={panel}
        id={id}
        class="menu"
        popover="auto"
        onToggle={onToggle}
        onClick={({ target }) => {
          const isAction = target instanceof Element && target.closest("[data-stays]") === null
          if (isAction && target.closest("a, button") !== null) panel.current?.hidePopover()
        }}
      >
        {children}
      </div>
    </>
  )
}
