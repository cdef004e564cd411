// Whether anybody but Pawl closes descriptors in this process, as a program does that it is a part
// of.
#pragma once

namespace pawl {

// Nobody does: then none of Pawl's is asked which file it is before it is closed.  The server of a
// file (FUSE) may say at any time that it is another one.
void set_sole_closer(bool is_sole);

}  // namespace pawl
