// A number that was counted a while ago is counted again once the page is there: data-recount has the address.
import { redrawBlocks } from "./live/blocks.js";

const place = document.querySelector("[data-recount]");
if (place) {
  const answer = await fetch(place.dataset.recount, { headers: { Accept: "application/json" } });
  if (answer.ok && (await answer.json()).changed) redrawBlocks();
  else place.remove();
}
