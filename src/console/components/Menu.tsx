import type { ComponentChildren, TargetedToggleEvent } from "preact"
import { useId, useRef } from "preact/hooks"

interface Props {
  /** The class of the button that opens it. */
  readonly class?: string
  /** Of a button that shows only a picture. */
  readonly label?: string
  readonly button: ComponentChildren
  readonly children: ComponentChildren
}

const gap = 4

/** Below the button, its right edge under the button's; above it where there is no room. */
const place = (panel: HTMLElement, button: HTMLElement): void => {
  const { bottom, left, right, top } = button.getBoundingClientRect()
  const { height, width } = panel.getBoundingClientRect()
  const fitsBelow = bottom + gap + height <= globalThis.innerHeight
  panel.style.top = `${fitsBelow ? bottom + gap : Math.max(gap, top - gap - height)}px`
  panel.style.left = `${Math.max(gap, right - width < gap ? left : right - width)}px`
}

/**
 * A button with a list of actions. The browser closes it by Escape and by a click elsewhere, and shows it above
 * all, so that no table cuts it off.
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
