// What the theme leaves out for readers of the screen: the name of the search.
document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
// Tables that are wider than the screen are scrolled by keyboard, too.
const focusable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("resize", focusable);
// The theme puts them into their boxes after this script has run.
new MutationObserver(focusable).observe(document.body, { childList: true, subtree: true });
focusable();
