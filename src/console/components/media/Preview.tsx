import { useEffect, useRef, useState } from "preact/hooks"
import { isShown, mediaPath } from "../../api/address.ts"
import type { Schemas } from "../../api/schema.ts"
import { Icon } from "../Icon.tsx"

type Of = Schemas["TaskListItem"]["preview"]

/** Media are loaded when they come this close to the viewport. */
const margin = "150px"

/**
 * Whether an element has been in or near the viewport. Browsers load images thousands of pixels ahead and videos at
 * once, but results are large and a list has many.
 */
const useSeen = <E extends Element>() => {
  const ref = useRef<E>(null)
  const [isSeen, setSeen] = useState(false)
  useEffect(() => {
    const { current } = ref
    if (current === null || isSeen) return undefined
    const observer = new IntersectionObserver(
      (entries) => setSeen(entries.some((it) => it.isIntersecting)),
      { rootMargin: margin }
    )
    observer.observe(current)
    return () => observer.disconnect()
  }, [isSeen])
  return { ref, isSeen }
}

/**
 * The first result next to the title of its task. A video is shown as an icon, so that lists load no videos. Without a
 * result the space stays empty, so that titles stay aligned.
 */
export const Thumbnail = ({ of }: { readonly of: Of }) => {
  if (of === undefined || !isShown(of.url)) return <NoPicture />
  return of.kind === "videos" ? (
    <span class="thumbnail">
      <Icon name="play" />
    </span>
  ) : (
    <SmallPicture src={mediaPath(of.url)} />
  )
}

const NoPicture = () => <span class="thumbnail" />

const SmallPicture = ({ src }: { readonly src: string }) => {
  const [isGone, setGone] = useState(false)
  const { isSeen, ref } = useSeen<HTMLImageElement>()
  return isGone ? (
    <NoPicture />
  ) : (
    <img
      ref={ref}
      class="thumbnail"
      src={isSeen ? src : undefined}
      alt=""
      decoding="async"
      onError={() => setGone(true)}
    />
  )
}

/** The first result, filling its space. The task's title is its name. */
export const PreviewMedia = ({ of }: { readonly of: NonNullable<Of> }) => {
  const { isSeen, ref } = useSeen<HTMLImageElement & HTMLVideoElement>()
  const src = isSeen ? mediaPath(of.url) : undefined
  return of.kind === "videos" ? (
    <video ref={ref} src={src} preload="metadata" muted />
  ) : (
    <img ref={ref} src={src} alt="" decoding="async" />
  )
}
