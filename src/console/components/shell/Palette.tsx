import { signal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { useResource } from "../../api/resource.ts"

const isOpen = signal(false)

const load = () => import("./PaletteSearch.tsx")

/** Loads the palette in advance, so that text typed right after opening it is not lost. */
export const preparePalette = (): void => {
  load().catch(() => undefined)
}

/** Opens the palette, like Ctrl or ⌘ with K. */
export const openPalette = (): void => {
  isOpen.value = true
}

/** Opened with Ctrl or ⌘ and K: finds pages, models, and anything with an id. */
export const Palette = () => {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Control" || event.key === "Meta") preparePalette()
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      openPalette()
    }
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [])
  return isOpen.value ? <Search onClose={() => (isOpen.value = false)} /> : null
}

const Search = ({ onClose }: { readonly onClose: () => void }) => {
  const { data: loaded } = useResource("palette", load)
  return loaded === undefined ? null : <loaded.PaletteSearch onClose={onClose} />
}
